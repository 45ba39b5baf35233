//! libFuzzer's entry to the target `lzf`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::lzf(data));
