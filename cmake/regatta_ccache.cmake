# Compiles through ccache when it is there, so that a second tree or preset costs little: paths below
# the source tree count as relative, so a fresh clone finds what another one compiled.
option(REGATTA_CCACHE "Compile through ccache when it is installed" ON)
if(REGATTA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCACHE ccache)
  if(CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 ${CCACHE})
  endif()
endif()
