//! libFuzzer's entry to the target `virtual_block`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::virtual_block(data));
