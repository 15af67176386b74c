# SPDX-License-Identifier: Apache-2.0
# Writes files as a C source that defines page_files (archiver/page/page.h):
# cmake -DFILES=LIST -DINTO=FILE -P embed.cmake
#
# index.html is what the path / gives, any other file is below /page/.

set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")
set(type_txt "text/plain; charset=utf-8")

set(arrays "")
set(rows "")
set(count 0)
foreach(file ${FILES})
  cmake_path(GET file FILENAME name)
  cmake_path(GET file EXTENSION LAST_ONLY extension)
  string(SUBSTRING ${extension} 1 -1 extension)
  set(path /page/${name})
  if(name STREQUAL "index.html")
    set(path /)
  endif()
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n\t" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  # A file may be empty, an array may not: one byte more, which nobody is given.
  string(APPEND arrays "static const unsigned char bytes_${count}[] = {\n\t${bytes}\n\t0x00};\n\n")
  string(APPEND rows "\t{\"${path}\", \"${type_${extension}}\", bytes_${count}, sizeof bytes_${count} - 1},\n")
  math(EXPR count "${count} + 1")
endforeach()

file(WRITE ${INTO} "/* The archiver's page, written by archiver/page/embed.cmake. */\n#include \"archiver/page/page.h\"\n\n${arrays}"
     "const struct api_file page_files[] = {\n${rows}};\n\nconst size_t page_file_count = ${count};\n")
