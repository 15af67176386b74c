// SPDX-License-Identifier: Apache-2.0
// Writes files of HDFS as a log's writer does, flushing without closing. Each line of its input is a command of words
// with tabs between; it answers "ok" when that is done.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

public class HdfsWriter {
    public static void main(String[] settings) throws Exception {
        Configuration configuration = new Configuration();
        for (String file : settings) {
            configuration.addResource(new Path(file));
        }
        configuration.setLong("dfs.blocksize", 1024 * 1024);
        FileSystem files = FileSystem.get(configuration);
        Map<String, FSDataOutputStream> open = new HashMap<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("ok");
        for (String line; (line = input.readLine()) != null;) {
            String[] words = line.split("\t");
            try {
                switch (words[0]) {
                    case "open": open.put(words[1], files.create(new Path(words[1]), true)); break;
                    case "append": open.put(words[1], files.append(new Path(words[1]))); break;
                    case "write":
                        open.get(words[1]).write(words[2].replace("\\n", "\n").getBytes(StandardCharsets.UTF_8));
                        break;
                    case "flush": open.get(words[1]).hflush(); break;
                    case "close": open.remove(words[1]).close(); break;
                    default: throw new IllegalArgumentException(words[0]);
                }
                System.out.println("ok");
            } catch (Exception why) {
                System.out.println(why.toString().replace("\n", " "));
            }
        }
    }
}
