# SPDX-License-Identifier: Apache-2.0
# Which tests run under which sanitizer: ctest's labels asan (AddressSanitizer and UndefinedBehaviorSanitizer) and
# tsan (ThreadSanitizer), which the presets of those names choose by.
#
# Every test of unit, integration and fuzz has both labels, except what is left out in sanitizers_left_out.cmake with a
# reason. The same rows stand in README.md; unit/test_sanitizers.py holds both equal to the labels.

get_directory_property(weir_watchable TESTS)
list(FILTER weir_watchable INCLUDE REGEX "^(unit|integration|fuzz)\\.|^cluster\\.down$")
set(weir_unwatched_asan "")
set(weir_unwatched_tsan "")
set(weir_unwatched_rows "")

# weir_leave_out(SANITIZER REASON TEST...): TEST is KIND.NAME, or KIND.* for a whole kind.
function(weir_leave_out sanitizer reason)
  set(names "")
  foreach(pattern ${ARGN})
    set(found ${weir_watchable})
    string(REPLACE "." "\\." regex ${pattern})
    string(REPLACE "*" ".*" regex ${regex})
    list(FILTER found INCLUDE REGEX "^${regex}$")
    if(NOT found AND Python3_FOUND)
      message(FATAL_ERROR "tests/sanitizers_left_out.cmake: there is no test ${pattern}")
    endif()
    list(APPEND weir_unwatched_${sanitizer} ${found})
    list(APPEND names "`${pattern}`")
  endforeach()
  list(JOIN names ", " names)
  set(weir_unwatched_${sanitizer} ${weir_unwatched_${sanitizer}} PARENT_SCOPE)
  set(weir_unwatched_rows "${weir_unwatched_rows}| `${sanitizer}` | ${names} | ${reason} |\n" PARENT_SCOPE)
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/sanitizers_left_out.cmake)

foreach(sanitizer asan tsan)
  foreach(test ${weir_watchable})
    if(NOT test IN_LIST weir_unwatched_${sanitizer})
      set_property(TEST ${test} APPEND PROPERTY LABELS ${sanitizer})
    endif()
  endforeach()
endforeach()

# An integration test that is no other with a sanitizer need not run again without: label whole. One that asks whether it
# is sanitized does less then, or leaves out a bound; one that sets its programs' clock is skipped then.
foreach(test ${weir_watchable})
  string(REGEX REPLACE "^integration\\.(.*)$" "${CMAKE_CURRENT_LIST_DIR}/integration/\\1.py" script ${test})
  if(EXISTS ${script} AND NOT test IN_LIST weir_unwatched_asan)
    file(STRINGS ${script} asks REGEX "SANITIZED|SteppedClock|faketime")
    if(NOT asks)
      set_property(TEST ${test} APPEND PROPERTY LABELS whole)
    endif()
  endif()
endforeach()

file(WRITE ${CMAKE_BINARY_DIR}/tests/sanitizers.md "${weir_unwatched_rows}")
