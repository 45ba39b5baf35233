//! libFuzzer's entry to the target `message_file`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::message_file(data));
