//! libFuzzer's entry to the target `zstandard`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::zstandard(data));
