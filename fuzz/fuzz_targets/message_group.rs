//! libFuzzer's entry to the target `message_group`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::message_group(data));
