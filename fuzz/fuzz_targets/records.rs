//! libFuzzer's entry to the target `records`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::records(data));
