//! libFuzzer's entry to the target `inflate_pair`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::inflate_pair(data));
