# Compiles through ccache when it is there, so that a second tree or preset costs little.
option(REGATTA_CCACHE "Compile through ccache when it is installed" ON)
if(REGATTA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCACHE ccache)
  if(CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  endif()
endif()
