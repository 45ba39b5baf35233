//! libFuzzer's entry to the target `deflate`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::deflate(data));
