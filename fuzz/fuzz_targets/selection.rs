//! libFuzzer's entry to the target `selection`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::selection(data));
