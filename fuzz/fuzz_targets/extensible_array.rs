//! libFuzzer's entry to the target `extensible_array`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::extensible_array(data));
