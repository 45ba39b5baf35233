//! libFuzzer's entry to the target `zfp`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::zfp(data));
