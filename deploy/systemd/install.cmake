# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` makes for the place that it installs to: units that name the programs where they lie, and the
# reference that the program writes of itself (WEIR_SOURCE, WEIR_BUILD and WEIR_PROGRAM are set before).
string(RANDOM LENGTH 12 own) # two may install at a time
set(made ${WEIR_BUILD}/install-${own})

file(GLOB units ${WEIR_SOURCE}/deploy/systemd/*.service)
foreach(unit IN LISTS units)
  cmake_path(GET unit FILENAME name)
  file(READ ${unit} text)
  string(REPLACE "/usr/local/bin/" "${CMAKE_INSTALL_PREFIX}/bin/" text "${text}")
  file(WRITE ${made}/lib/systemd/system/${name} "${text}")
endforeach()

execute_process(COMMAND ${WEIR_PROGRAM} reference --dir ${made}/share COMMAND_ERROR_IS_FATAL ANY)
# A shell finds a program's completion by the program's name.
foreach(daemon IN ITEMS weir-collector weir-limiter weir-archiver)
  file(CREATE_LINK weir ${made}/share/bash-completion/completions/${daemon} SYMBOLIC)
  file(CREATE_LINK weir.fish ${made}/share/fish/vendor_completions.d/${daemon}.fish SYMBOLIC)
endforeach()

file(INSTALL ${made}/ DESTINATION "${CMAKE_INSTALL_PREFIX}" TYPE DIRECTORY)
file(REMOVE_RECURSE ${made})
