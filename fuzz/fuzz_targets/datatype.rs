//! libFuzzer's entry to the target `datatype`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::datatype(data));
