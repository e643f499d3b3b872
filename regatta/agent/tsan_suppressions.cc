// What ThreadSanitizer must not report in programs that use gRPC: the packaged libraries are not
// built with it, so it does not see how they synchronise. Linked into the agent and the tests.

// The sanitizer looks for this name; without it nothing calls the function.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __tsan_default_suppressions() {
  return "race:libgrpc\nmutex:libgrpc\nrace:libgpr\nrace:libabsl\nmutex:libabsl\nrace:libprotobuf\n"
         "race:libupb\nrace:libaddress_sorting\nrace:libcares\nrace:libre2\nrace:libcrypto\n"
         "race:libssl\n";
}
