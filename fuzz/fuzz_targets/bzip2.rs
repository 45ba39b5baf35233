//! libFuzzer's entry to the target `bzip2`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::bzip2(data));
