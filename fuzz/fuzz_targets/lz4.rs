//! libFuzzer's entry to the target `lz4`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::lz4(data));
