//! libFuzzer's entry to the target `zrecord`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::zrecord(data));
