// LeakSanitizer ignores these leaks in the tests: hwloc's plugin for PCI, where libhwloc-plugins is
// installed, loses what libpciaccess gave it. A topology that is never destroyed is still reported:
// hwloc_topology_init makes it.

// The sanitizer looks for these names; without it nothing calls the functions.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __asan_default_options() {
  return "fast_unwind_on_malloc=0";  // the plugin keeps no frame pointers, and is unloaded at the
                                     // end
}

extern "C" const char* __lsan_default_suppressions() {
  return "leak:hwloc_topology_load\n";
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
