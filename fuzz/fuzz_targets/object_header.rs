//! libFuzzer's entry to the target `object_header`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::object_header(data));
