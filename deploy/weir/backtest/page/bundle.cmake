# SPDX-License-Identifier: Apache-2.0
# Writes the page of a report as a C source, in two parts between which the report stands (deploy/weir/backtest/page.h):
# cmake -DHTML=FILE -DSTYLES=LIST -DMODULES=LIST -DINTO=FILE -P bundle.cmake
#
# A page that is one file cannot import modules. So each becomes a function that gives what it exports, in an order in
# which all that one imports is above it. They are written as this reads them: an import or export stands on a line of
# its own, and names what it is about.

set(scripts "")
foreach(file ${MODULES})
  cmake_path(GET file STEM name)
  file(READ ${file} text)
  string(REGEX MATCHALL "\nexport (const|function) [A-Za-z0-9_]+" exported "${text}")
  string(REGEX REPLACE "\nexport (const|function) " "" exported "${exported}")
  string(REPLACE ";" ", " exported "${exported}")
  string(REGEX REPLACE "\nimport ({[^}]*}) from \"\\./([A-Za-z]+)\\.js\";" "\nconst \\1 = module_\\2();" text "${text}")
  string(REGEX REPLACE "\nimport ([A-Za-z]+) from \"\\./([A-Za-z]+)\\.js\";" "\nconst \\1 = module_\\2().standard;" text "${text}")
  string(REGEX REPLACE "\nexport (const|function) " "\n\\1 " text "${text}")
  string(REGEX REPLACE "(^|\n)export default ([A-Za-z]+);" "\\1const standard = \\2;" text "${text}")
  if(text MATCHES "(^|\n)const standard = ")
    string(APPEND exported "standard")
  endif()
  # made once, at the first import
  string(APPEND scripts "\nconst module_${name} = ((made) => () => (made ??= (() => {\n${text}\nreturn { ${exported} };\n})()))();\n")
  set(last ${name})
endforeach()
string(APPEND scripts "module_${last}();\n")

set(styles "")
foreach(file ${STYLES})
  file(READ ${file} text)
  string(APPEND styles "${text}")
endforeach()

file(READ ${HTML} page)
string(REPLACE "{styles}" "${styles}" page "${page}")
string(REPLACE "{scripts}" "${scripts}" page "${page}")
string(FIND "${page}" "{report}" at)
string(SUBSTRING "${page}" 0 ${at} head)
string(LENGTH "{report}" length)
math(EXPR at "${at} + ${length}")
string(SUBSTRING "${page}" ${at} -1 tail)

set(source "/* A report's page, written by deploy/weir/backtest/page/bundle.cmake. */\n#include \"deploy/weir/backtest/page.h\"\n")
foreach(part head tail)
  string(HEX "${${part}}" bytes)
  string(REGEX REPLACE "(................................)" "\\1\n\t" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND source "\nconst unsigned char report_page_${part}[] = {\n\t${bytes}};\nconst size_t report_page_${part}_bytes = sizeof report_page_${part};\n")
endforeach()
file(WRITE ${INTO} "${source}")
