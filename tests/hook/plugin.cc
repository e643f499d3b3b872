// A plug-in of which only this part is opened; another library comes with it.
extern "C" {
void* regatta_test_find_in_dependency(const char* name);

void* regatta_test_find(const char* name) {
  void* volatile found = regatta_test_find_in_dependency(name);  // no jump: this is who called
  return found;
}
}
