# The warnings of every target; REGATTA_WERROR makes them errors. It is on in the presets that develop
# regatta and off in release: a warning of a newer compiler must not stop a build by users.
option(REGATTA_WERROR "Treat warnings as errors" OFF)

function(regatta_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
    # Designated initializers name what differs from the defaults; the rest is meant to be left out.
    -Wno-missing-field-initializers
    # In C++ clang alone counts an int as an index among the conversions. C may have another compiler.
    "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety;-Wno-sign-conversion>"
    # A false positive on std::string at -O3 in g++ 12.
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
    # g++ 12 takes values for uninitialized when it checks them for a sanitizer.
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${REGATTA_SANITIZER}>>:-Wno-maybe-uninitialized>
    $<$<BOOL:${REGATTA_WERROR}>:-Werror>)
endfunction()
