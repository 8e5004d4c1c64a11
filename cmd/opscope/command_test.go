package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestUsage types what is wrong, and wants to be told what to type instead.
func TestUsage(t *testing.T) {
	empty := t.TempDir()
	notOurs := t.TempDir()
	if err := os.WriteFile(filepath.Join(notOurs, "x.yaml"), []byte("protocol: chess\npackets: {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want []string // in the message
	}{
		"no file":                     {[]string{"decode"}, []string{"no file to read", "try: opscope decode FILE"}},
		"a mistyped command":          {[]string{"decod"}, []string{`"decod"`, "did you mean decode?", "try: opscope --help"}},
		"a command nobody knows":      {[]string{"frobnicate"}, []string{`no command and no file "frobnicate"`, "try: opscope --help"}},
		"a mistyped schema command":   {[]string{"schema", "lst"}, []string{`"lst"`, "did you mean list?", "try: opscope schema --help"}},
		"an unknown flag":             {[]string{"decode", "--frob", "x"}, []string{"--frob", "try: opscope decode --help"}},
		"a flag without its value":    {[]string{"decode", "-T"}, []string{"-T", "try: opscope decode --help"}},
		"an unknown format":           {[]string{"decode", "-T", "xml", sessionCapture}, []string{`"xml"`, "try one of: text json fields tsv csv table"}},
		"an unknown time format":      {[]string{"decode", "-t", "q", sessionCapture}, []string{`"q"`, "a ad adoy d dd e r u ud udoy"}},
		"an unknown colour":           {[]string{"decode", "--color", "green", sessionCapture}, []string{`"green"`, "auto, always or never"}},
		"an unknown protocol":         {[]string{"decode", "--protocol", "quake", sessionCapture}, []string{`"quake"`, "wulfram"}},
		"a rule without a port":       {[]string{"decode", "-d", "7777,wulfram", sessionCapture}, []string{"7777,wulfram", "try: -d udp.port==7777,wulfram"}},
		"a rule without a protocol":   {[]string{"decode", "-d", "udp.port==7777", sessionCapture}, []string{"try: -d udp.port==7777,wulfram"}},
		"a rule for another field":    {[]string{"decode", "-d", "ip.proto==17,wulfram", sessionCapture}, []string{"try: -d udp.port==7777,wulfram"}},
		"a rule with too high a port": {[]string{"decode", "-d", "udp.port==77777,wulfram", sessionCapture}, []string{"try: -d udp.port==7777,wulfram"}},
		"a rule for no protocol":      {[]string{"decode", "-d", "udp.port==7777,quake", sessionCapture}, []string{`"quake"`, "wulfram"}},
		"a negative count":            {[]string{"decode", "-c", "-1", sessionCapture}, []string{"-c -1", "0 for all"}},
		"a count that is no number":   {[]string{"decode", "-c", "many", sessionCapture}, []string{"many", "try: opscope decode --help"}},
		"a negative hold":             {[]string{"decode", "--hold=-1s", sessionCapture}, []string{"--hold", "2s"}},
		"a hold without a unit":       {[]string{"decode", "--hold", "2", sessionCapture}, []string{"hold", "try: opscope decode --help"}},
		"tables as JSON":              {[]string{"decode", "--tables", "-T", "json", sessionCapture}, []string{"--tables", "not json", "without -T"}},
		"no directory of schemas":     {[]string{"decode", "--schema", filepath.Join(empty, "x"), sessionCapture}, []string{"--schema"}},
		"a file of schemas":           {[]string{"decode", "--schema", sessionCapture, sessionCapture}, []string{"--schema " + sessionCapture + ": want a directory"}},
		"a file of messages":          {[]string{"decode", "--proto", sessionCapture, sessionCapture}, []string{"--proto " + sessionCapture + ": want a directory"}},
		"a directory without schemas": {[]string{"decode", "--schema", empty, sessionCapture}, []string{"no schema files (*.yaml)"}},
		"schemas of no protocol":      {[]string{"decode", "--schema", notOurs, sessionCapture}, []string{"nothing there for a known protocol", "try: protocol: dplay or lotr2 or mmo or netrek or wulfram"}},
		"schema show of nothing":      {[]string{"schema", "show"}, []string{"PROTOCOL [PACKET]", "try: opscope schema show wulfram UPDATE_ARRAY"}},
		"a mistyped packet":           {[]string{"schema", "show", "wulfram", "UPDATE_ARAY"}, []string{"did you mean UPDATE_ARRAY?", "try: opscope schema list wulfram"}},
		"no such opcode":              {[]string{"schema", "show", "wulfram", "0xEE"}, []string{"0xEE", "try: opscope schema list wulfram"}},
		"schema list of no protocol":  {[]string{"schema", "list", "quake"}, []string{`"quake"`, "try one of: dplay lotr2 mmo netrek wulfram"}},
		"no interface":                {[]string{"sniff"}, []string{"no interface", "try: opscope sniff -i any"}},
		"two capture filters":         {[]string{"sniff", "-i", "lo", "-f", "udp", "tcp"}, []string{"two capture filters"}},
		"a port and a filter":         {[]string{"sniff", "-i", "lo", "--port", "2627", "udp"}, []string{"--port makes a capture filter", "with port 2627 in it"}},
		"a port that is none":         {[]string{"sniff", "-i", "lo", "--port", "2627,x"}, []string{`--port "2627,x"`, "1 to 65535"}},
		"a wrong capture filter":      {[]string{"sniff", "-i", "lo", "udp", "prot", "7"}, []string{"udp prot 7\n      ^"}},
		"a wrong filter of a file":    {[]string{"decode", "-f", "udp prot 7", sessionCapture}, []string{"udp prot 7\n      ^"}},
		"a limit of nothing":          {[]string{"sniff", "-i", "lo", "-b", "packets:9"}, []string{"the files of -w, which is not there"}},
		"a limit without a number":    {[]string{"sniff", "-i", "lo", "-a", "duration"}, []string{`-a "duration"`, "duration:10"}},
		"a limit nobody knows":        {[]string{"sniff", "-i", "lo", "-a", "mood:3"}, []string{`-a "mood:3"`, "duration, filesize, packets or files"}},
		"standard output in parts":    {[]string{"sniff", "-i", "lo", "-w", "-", "-b", "packets:9"}, []string{"no next file"}},
		"a command and no capture":    {[]string{"verify", "--run", "true"}, []string{"--run wants an interface", "try: -i lo"}},
		"a capture of a file":         {[]string{"verify", "-i", "lo", sessionCapture}, []string{"-i captures, and " + sessionCapture}},
		"live, but for the interface": {[]string{"verify", "--port", "2627", sessionCapture}, []string{"--port is about a live capture"}},
		"a report and a capture":      {[]string{"verify", "-i", "lo", "-w", "-"}, []string{"standard output has the report"}},
		"too small a queue":           {[]string{"sniff", "-i", "lo", "--queue", "0"}, []string{"--queue at least 1 MiB"}},
		"man without a directory":     {[]string{"man"}, []string{"takes DIR", "try: opscope man"}},
		"notes with a word":           {[]string{"notes", "x"}, []string{"takes no arguments"}},
		"a shell nobody knows":        {[]string{"completion", "tcsh"}, []string{`"tcsh"`, "try: opscope completion --help"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := opscope(t, test.args...)
			if r.code != exitUsage {
				t.Errorf("exit code %d, want %d", r.code, exitUsage)
			}
			if r.out != "" {
				t.Errorf("standard output has %q", r.out)
			}
			for _, want := range test.want {
				if !strings.Contains(r.err, want) {
					t.Errorf("got %q, want %q in it", r.err, want)
				}
			}
			if strings.Count(r.err, "opscope: ") != 1 {
				t.Errorf("got %q, want one message", r.err)
			}
		})
	}
}

// TestUnreadable gives files that cannot be read, which is not a matter of usage.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		content string
		want    string
	}{
		"no.pcap":   {"", "no such file"},
		"empty":     {"", "is empty"},
		"notes.txt": {"Dear diary,\nno packets today.\n", "looks like text"},
		"page.html": {"<!DOCTYPE html>\n<html></html>\n", "not a capture"},
		"tool":      {"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00", "not a capture"},
		"x.zip":     {"PK\x03\x04\x14\x00\x00\x00\x08\x00", "not a capture"},
		"x.json":    {"[{\"_index\": \"packets\"}]\n", "not a capture"},
		"a.ndjson":  {"{\"hello\": 1}\n", "a.ndjson"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name)
			if name != "no.pcap" {
				file = writeTemp(t, name, []byte(test.content))
			}
			for _, command := range [][]string{{"decode"}, {"decode", "-z", "flows"}, {"opcodes"}, {"flows", "-T", "json"}, {"acks"}, {"tables"}, {"unknown"}} {
				r := opscope(t, append(command, file)...)
				if r.code != exitInput || !strings.Contains(r.err, test.want) || !strings.Contains(r.err, name) {
					t.Errorf("%s: exit code %d, %q; want %d, %q and the name", command, r.code, r.err, exitInput, test.want)
				}
				if r.out != "" {
					t.Errorf("%s: prints %q, and nothing was read", command, r.out)
				}
			}
		})
	}
	for _, jobs := range []string{"1", "2"} {
		one := opscope(t, "opcodes", "-j", jobs, filepath.Join(dir, "no.pcap"), sessionCapture)
		if want := good(t, "opcodes", sessionCapture); one.code != exitInput || one.out != want {
			t.Errorf("-j %s beside a capture: exit code %d, got\n%swant\n%s", jobs, one.code, one.out, want)
		}
	}
}

func TestDamaged(t *testing.T) {
	whole := good(t, "decode", "--hold", "0", sessionCapture)
	data := readFile(t, sessionCapture)
	file := writeTemp(t, "cut.pcapng", data[:len(data)-10])
	r := opscope(t, "decode", "--hold", "0", file)
	if r.code != exitInput || !strings.Contains(r.err, "at byte ") || !strings.Contains(r.err, "truncated") {
		t.Errorf("exit code %d, %q", r.code, r.err)
	}
	if lines := strings.Count(r.out, "\n"); lines < strings.Count(whole, "\n")-2 {
		t.Errorf("%d lines of %d; what could be decoded is to be printed", lines, strings.Count(whole, "\n"))
	}
	lenient := opscope(t, "decode", "--hold", "0", "--lenient", file)
	if lenient.code != exitDone || lenient.out != r.out || lenient.err != r.err {
		t.Errorf("--lenient: exit code %d, %q", lenient.code, lenient.err)
	}
}

func TestSeveralFiles(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.pcap")
	all := objects(t, good(t, "decode", "-T", "json", "--summary", sessionCapture, "-r", sessionCapture))
	var files []any
	for _, o := range all {
		if o["type"] == "summary" {
			files = append(files, o["file"])
		}
		if o["type"] == "record" && o["session"] != 1.0 {
			t.Fatalf("session %v: each file has its own state", o["session"])
		}
	}
	if !slices.Equal(files, []any{0.0, 1.0}) {
		t.Errorf("summaries of files %v, want 0 and 1", files)
	}
	text := good(t, "decode", sessionCapture, sessionCapture)
	if want := "-- file: " + sessionCapture + " --\n" + good(t, "decode", sessionCapture); text != want+want {
		t.Errorf("as text: %s", firstDifference(text, want+want))
	}
	r := opscope(t, "decode", "-q", missing, sessionCapture)
	if r.code != exitInput || !strings.Contains(r.err, "missing.pcap") || !strings.Contains(r.out, "134 wulfram records") {
		t.Errorf("one that is missing: exit code %d, %q, %q", r.code, r.err, r.out)
	}
}

func TestPlainFile(t *testing.T) {
	want := good(t, "decode", sessionCapture)
	for _, args := range [][]string{{sessionCapture}, {"-r", sessionCapture}, {"decode", "-r", sessionCapture}, {"-t", "a", sessionCapture}} {
		if got := good(t, args...); got != want {
			t.Errorf("opscope %v: %s", args, firstDifference(got, want))
		}
	}
}

func TestCount(t *testing.T) {
	all := records(objects(t, good(t, "-T", "json", sessionCapture)))
	for _, n := range []string{"1", "5", "133", "134", "1000"} {
		got := records(objects(t, good(t, "-T", "json", "-c", n, sessionCapture)))
		want := map[string]int{"1": 1, "5": 5, "133": 133, "134": 134, "1000": 134}[n]
		if len(got) != want || !equal(got[len(got)-1], all[len(got)-1]) {
			t.Errorf("-c %s: %d records, want %d", n, len(got), want)
		}
	}
	two := records(objects(t, good(t, "-T", "json", "-c", "140", sessionCapture, sessionCapture)))
	if len(two) != 140 || two[139]["file"] != 1.0 {
		t.Errorf("-c 140 over two files: %d records", len(two))
	}
}

func TestQuiet(t *testing.T) {
	if got := good(t, "decode", "-q", sessionCapture); !strings.HasPrefix(got, "71 packets, ") || !strings.Contains(got, "134 wulfram records\n") {
		t.Errorf("got %q", got)
	}
	if got := objects(t, good(t, "decode", "-q", "-T", "json", sessionCapture)); len(got) != 1 || got[0]["type"] != "summary" {
		t.Errorf("as JSON: got %v", got)
	}
}

// TestTimes takes the words of -t in turn, for the first line.
func TestTimes(t *testing.T) {
	for word, want := range map[string]string{
		"a": "20:15:02.071563", "u": "20:15:02.071563",
		"ad": "2026-11-29 20:15:02.071563", "ud": "2026-11-29 20:15:02.071563",
		"adoy": "2026/333 20:15:02.071563", "udoy": "2026/333 20:15:02.071563",
		"e": "1795983302.071563", "r": "0.061180", "d": "0.022618", "dd": "0.000000",
	} {
		line, _, _ := strings.Cut(good(t, "decode", "-t", word, sessionCapture), "\n")
		if !strings.HasPrefix(strings.TrimLeft(line, " "), want+" ") {
			t.Errorf("-t %s: got %q, want %s", word, line, want)
		}
	}
}

func TestColor(t *testing.T) {
	const escape = "\x1b["
	colored := good(t, "decode", "--color", "always", sessionCapture)
	plain := good(t, "decode", "--color", "never", sessionCapture)
	if !strings.Contains(colored, escape) || strings.Contains(plain, escape) {
		t.Error("always and never do not do what they say")
	}
	if stripped := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(colored, ""); stripped != plain {
		t.Errorf("without its colour: %s", firstDifference(stripped, plain))
	}
	for _, test := range []struct {
		env  map[string]string
		args []string
		want string
	}{
		{nil, nil, plain},
		{map[string]string{"FORCE_COLOR": "1"}, nil, colored},
		{map[string]string{"CLICOLOR_FORCE": "1"}, nil, colored},
		{map[string]string{"FORCE_COLOR": "0"}, nil, plain},
		{map[string]string{"FORCE_COLOR": "1", "NO_COLOR": "1"}, nil, plain},
		{map[string]string{"NO_COLOR": "1"}, []string{"--color", "always"}, colored},
		{map[string]string{"FORCE_COLOR": "1"}, []string{"--color", "never"}, plain},
	} {
		for _, name := range []string{"FORCE_COLOR", "CLICOLOR_FORCE", "NO_COLOR"} {
			t.Setenv(name, test.env[name])
		}
		if got := good(t, append([]string{"decode", sessionCapture}, test.args...)...); got != test.want {
			t.Errorf("with %v %v: %s", test.env, test.args, firstDifference(got, test.want))
		}
	}
}

// TestSecrets looks for the password of the capture, as text and as hex, in
// everything that can be asked for.
func TestSecrets(t *testing.T) {
	const password, inHex = "swordfish", "73776f726466697368"
	compact := regexp.MustCompile(`[^0-9A-Za-z]`)
	shows := func(out string) bool {
		squeezed := compact.ReplaceAllString(out, "")
		return strings.Contains(out, password) || strings.Contains(squeezed, inHex) || strings.Contains(strings.ToLower(squeezed), inHex)
	}
	for _, args := range [][]string{
		{"decode"}, {"decode", "-v"}, {"decode", "-V"}, {"decode", "-x"}, {"decode", "-V", "-x"}, {"decode", "-T", "json"},
		{"decode", "-T", "json", "--raw"}, {"decode", "--tables"}, {"decode", "-q"}, {"decode", "-T", "json", "--summary"},
		{"follow", "1"}, {"follow", "1", "-V", "-x"}, {"follow", "1", "-T", "json", "--raw"}, {"ladder", "1"}, {"ladder", "1", "--ascii"},
	} {
		args = append(args, "--width", "-1", sessionCapture)
		if shows(good(t, args...)) {
			t.Errorf("opscope %v shows the password", args)
		}
	}
	for _, args := range [][]string{
		{"decode"}, {"decode", "-v"}, {"decode", "-V"}, {"decode", "-x"}, {"decode", "-T", "json"}, {"decode", "-T", "json", "--raw"},
		{"follow", "1"}, {"follow", "1", "-x"}, {"ladder", "1"},
	} {
		args = append(args, "--show-secrets", "--width", "-1", sessionCapture)
		if !shows(good(t, args...)) {
			t.Errorf("opscope %v does not show the password", args)
		}
	}
}

// A login has a secret and a name: showing the one leaves the other masked, in its field and
// in the bytes.
func TestNamesAreMaskedBesideShownSecrets(t *testing.T) {
	got := good(t, "decode", "-T", "json", "--raw", "--show-secrets", "--mask-personal", "-Y", `message == "LOGIN"`, "../../pcaps/wulfram/login.pcapng")
	for _, shown := range []string{`"swordfish"`, "73776f726466697368"} {
		if !strings.Contains(got, shown) {
			t.Errorf("the secret %s does not show", shown)
		}
	}
	for _, hidden := range []string{`"Ada"`, "416461"} {
		if strings.Contains(got, hidden) {
			t.Errorf("the name %s shows in\n%s", hidden, got)
		}
	}
}

// TestOverlay puts a layout of the user's over a built-in one.
func TestOverlay(t *testing.T) {
	dir := t.TempDir()
	mine := []byte(`protocol: wulfram
packets:
  RETARGET:
    opcode: 0x26
    from: client
    source: my own eyes
    confidence: guess
    fields:
      - target: u32
`)
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), mine, 0o644); err != nil {
		t.Fatal(err)
	}
	retarget := func(args ...string) map[string]any {
		all := records(objects(t, good(t, append([]string{"decode", "-T", "json", sessionCapture}, args...)...)))
		i := slices.IndexFunc(all, func(r map[string]any) bool { return r["message"] == "RETARGET" })
		return all[i]
	}
	if r := retarget(); r["rest"] != "000000af" || !has(r, "unknown_body") {
		t.Errorf("without: rest %v, notes %v", r["rest"], r["notes"])
	}
	if r := retarget("--schema", dir); !equal(r["fields"], map[string]any{"target": 175.0}) || r["rest"] != "" || has(r, "unknown_body") {
		t.Errorf("with: fields %v, rest %v, notes %v", r["fields"], r["rest"], r["notes"])
	}
	if text := good(t, "decode", "-V", "--schema", dir, sessionCapture); !strings.Contains(text, "guess, my own eyes") {
		t.Error("the text does not say whose guess it is")
	}
	ndjson := writeTemp(t, "x.ndjson", []byte(good(t, "decode", "-T", "json", "--schema", dir, sessionCapture)))
	if back := good(t, "decode", "-T", "json", "--schema", dir, ndjson); !strings.Contains(back, `"target":175`) {
		t.Error("reading it back loses the field")
	}

	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte(strings.Replace(string(mine), "u32", "unit32", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	r := opscope(t, "decode", "--schema", dir, sessionCapture)
	if r.code != exitUsage || !strings.Contains(r.err, "mine.yaml:9:") || !strings.Contains(r.err, "did you mean u32?") || r.out != "" {
		t.Errorf("with a mistake in it: exit code %d, %q", r.code, r.err)
	}
}

// A line that masks looks at all elements of an array, though it shows their number: whether
// there is anything to mask, a later one may tell.
func TestALineMasksNoMoreThanThereIs(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string][]byte{"mine.yaml": []byte(`protocol: wulfram
packets:
  COMM_MESSAGE_REQUEST:
    opcode: 0x20
    from: client
    source: my own eyes
    confidence: guess
    fields:
      - l: cell[16]
types:
  cell:
    - a: u8
    - c: u8
      if: a == 0x6f
      redact: personal
`)})
	args := []string{"decode", "--mask-personal", "--schema", dir, "--only", "COMM_MESSAGE_REQUEST", sessionCapture}
	if got := good(t, args...); !strings.Contains(got, "l=16 rest=00") {
		t.Fatalf("got %s", got)
	}
	all := good(t, slices.Concat(args[:4], args[6:])...)
	if !strings.Contains(all, "l=16 rest=00") {
		t.Error("among all records, the line masks bytes that are not personal")
	}
}

// TestProtocolChoice gives a port to the protocol, and takes its own away.
func TestProtocolChoice(t *testing.T) {
	if got := good(t, "decode", "--protocol", "wulfram", sessionCapture); got != good(t, "decode", sessionCapture) {
		t.Error("--protocol changes what is recognised anyway")
	}
	for _, rule := range []string{"udp.port==50111,wulfram", "tcp.port==2627,wulfram", " udp.port == 2627 , wulfram "} {
		if got := records(objects(t, good(t, "decode", "-T", "json", "-d", rule, sessionCapture))); len(got) != 134 {
			t.Errorf("-d %q: %d records, want 134", rule, len(got))
		}
	}
}

// TestNothingToShow proves that a capture of something else does not leave its reader
// with an empty screen, and that -d finds what is on an unusual port.
func TestNothingToShow(t *testing.T) {
	file := writeTemp(t, "odd.pcap", datagramCapture("\x40\x00\x00\x00\x07")) // INPUT_FEEDBACK

	got := opscope(t, "decode", file)
	if got.code != exitDone || got.out != "" || !strings.Contains(got.err, "no records of a known protocol (packets: 1, flows of something else: 1)") ||
		!strings.Contains(got.err, "try: -d udp.port==PORT,PROTOCOL") {
		t.Errorf("exit code %d, %q, %q", got.code, got.out, got.err)
	}
	for _, args := range [][]string{{"-d", "udp.port==7777,wulfram"}, {"--protocol", "wulfram"}} {
		out := good(t, append([]string{"decode", file}, args...)...)
		if !strings.Contains(out, "INPUT_FEEDBACK") || !strings.Contains(out, "accumulator=7") {
			t.Errorf("with %v: got %q", args, out)
		}
	}
	if got := opscope(t, "decode", writeTemp(t, "empty.pcap", datagramCapture()[:24])); got.code != exitDone || !strings.Contains(got.err, "no packets") {
		t.Errorf("without packets: exit code %d, %q", got.code, got.err)
	}
}

func TestSchemaList(t *testing.T) {
	if got := good(t, "schema", "list"); !strings.Contains(got, "wulfram") || !strings.Contains(got, "tcp 2627, udp 2627") {
		t.Errorf("got %q", got)
	}
	got := good(t, "schema", "list", "wulfram")
	var opcodes []string
	for line := range strings.Lines(got) {
		opcodes = append(opcodes, strings.Fields(line)[0])
	}
	if len(opcodes) < 80 || !slices.IsSorted(opcodes[1:]) {
		t.Errorf("%d packets, want all of them by opcode", len(opcodes)-1)
	}
}

func TestSchemaShow(t *testing.T) {
	got := good(t, "schema", "show", "wulfram", "UPDATE_ARRAY")
	compareGolden(t, "../../testdata/golden/wulfram/schema-show.txt", got)
	for _, word := range []string{"0x0E", "0x0e", "14", "update_array"} {
		if again := good(t, "schema", "show", "wulfram", word); again != got {
			t.Errorf("by %s: %s", word, firstDifference(again, got))
		}
	}
	for line := range strings.Lines(got) {
		if n := len(strings.TrimSuffix(line, "\n")); n > defaultWidth || strings.HasSuffix(line, " \n") {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	for packet, want := range map[string][]string{
		"D_ACK":         {"unit", "ms", "recovered", "0x00505790"},
		"HELLO":         {"from the client", "from the server", "hello_server"},
		"REINCARNATE":   {"switch mode", "case team", "else"},
		"CARRYING_INFO": {"reading 1 of 3, Wulf-Forge", "reading 3 of 3, wulfram-server"},
		"RETARGET":      {"the layout of the body is unknown"},
		"RESET_GAME":    {"an empty body"},
		"LOGIN":         {"secret"},
		"ROOT":          {"open", "so far: ", "evidence: "},
	} {
		got := good(t, "schema", "show", "wulfram", packet)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in\n%s", packet, w, got)
			}
		}
	}
}

func TestSchemaCheck(t *testing.T) {
	if got := good(t, "schema", "check"); !strings.Contains(got, "wulfram: ") {
		t.Errorf("got %q", got)
	}
	if got := good(t, "schema", "check", "../../schema/protocols/wulfram"); !strings.Contains(got, "good") {
		t.Errorf("got %q", got)
	}
	broken, err := filepath.Glob("../../testdata/broken/schema/*.yaml")
	if err != nil || len(broken) == 0 {
		t.Fatalf("no broken schemas: %v", err)
	}
	for _, file := range broken {
		r := opscope(t, "schema", "check", file)
		if r.code != exitUsage || r.out != "" || !strings.Contains(r.err, filepath.Base(file)) {
			t.Errorf("%s: exit code %d, %q, %q", filepath.Base(file), r.code, r.out, r.err)
		}
		if !regexp.MustCompile(`\.yaml:\d+:\d+: `).MatchString(r.err) {
			t.Errorf("%s: %q has no place", filepath.Base(file), r.err)
		}
	}
	r := opscope(t, append([]string{"schema", "check"}, broken...)...)
	if r.code != exitUsage || strings.Count(r.err, "opscope: ") != len(broken) {
		t.Errorf("all together: exit code %d, %d messages, want %d", r.code, strings.Count(r.err, "opscope: "), len(broken))
	}
	if r := opscope(t, "schema", "check", "no-such-folder"); r.code != exitUsage {
		t.Errorf("no folder: exit code %d", r.code)
	}
}

// TestNotes proves that each note of a golden capture is in the list.
func TestNotes(t *testing.T) {
	list := good(t, "notes")
	for _, r := range records(objects(t, good(t, "-T", "json", sessionCapture))) {
		for _, n := range r["notes"].([]any) {
			if code := n.(map[string]any)["code"].(string); !strings.Contains(list, "\n"+code+" ") {
				t.Errorf("%s is not in the list", code)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	got := good(t, "version")
	if got != good(t, "--version") || !regexp.MustCompile(`^opscope \S.*\n$`).MatchString(got) {
		t.Errorf("got %q and %q", got, good(t, "--version"))
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := good(t, "completion", shell); !strings.Contains(got, "opscope") || len(got) < 1000 {
			t.Errorf("%s: %d bytes", shell, len(got))
		}
	}
	for line, want := range map[string]string{
		"decode --protocol ":      "wulfram\n",
		"decode -T ":              "json\nfields\ntsv\ncsv\ntable\n",
		"flows -T ":               "text\njson\n:",
		"decode --only D_A":       "D_ACK\n:",
		"decode --hide D_ACK,ACK": "D_ACK,ACK1\n",
		"decode -e entities.mask": "entities.mask.position\n",
		"sniff -e fields.d":       "fields.dir\n",
		"verify --rule in_":       "in_order\n",
		"verify --rules net":      "netrek\n",
		"sniff -i ":               "any\n",
		"unknown --protocol ":     "wulfram\nnetrek\nlotr2\nmmo\n:",
		"decode -t ":              "adoy\n",
		"decode --color ":         "never\n",
		"decode --summary=":       "json\n",
		"decode --limit ":         "stream-bytes\n",
		"schema show ":            "wulfram\n",
		"schema show wulfram UPD": "UPDATE_ARRAY\n",
	} {
		r := opscope(t, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if r.code != exitDone || !strings.Contains(r.out, want) {
			t.Errorf("%q completes to %q, want %q in it", line, r.out, want)
		}
	}
}

func TestMan(t *testing.T) {
	write := func() map[string]string {
		dir := filepath.Join(t.TempDir(), "man")
		if out := good(t, "man", dir); out != "" {
			t.Errorf("got %q", out)
		}
		pages := map[string]string{}
		files, err := filepath.Glob(dir + "/*.1")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			pages[filepath.Base(f)] = string(readFile(t, f))
		}
		return pages
	}
	pages := write()
	for _, name := range []string{"opscope.1", "opscope-decode.1", "opscope-follow.1", "opscope-ladder.1", "opscope-schema-show.1", "opscope-notes.1"} {
		if !strings.Contains(pages[name], ".TH ") {
			t.Errorf("no page %s", name)
		}
	}
	for name, page := range write() {
		if page != pages[name] {
			t.Errorf("%s differs the second time", name)
		}
	}
}

// TestExamples runs the examples of the help that read a capture of this
// repository; all commands that do something have some, and a line that says what for.
func TestExamples(t *testing.T) {
	likeRepository(t)
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		if c.Short == "" {
			t.Errorf("%s does not say what for", c.CommandPath())
		}
		if c.Example == "" && c.Flags().Lookup("read") != nil {
			t.Errorf("%s has no examples", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			runExample(t, line)
		}
	}
	visit(newRoot(streams{}, nil))
}

// likeRepository goes to a directory that has what the repository has, and takes what
// examples write.
func likeRepository(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"cmd", "pcaps", "schema", "testdata"} {
		from, err := filepath.Abs("../../" + name)
		if err == nil {
			err = os.Symlink(from, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

var shellWord = regexp.MustCompile(`'[^']*'|\S+`)

// shellWords returns the words of a command line, up to where its output goes or a comment
// begins.
func shellWords(line string) (words []string) {
	for _, w := range shellWord.FindAllString(line, -1) {
		if w[0] == '|' || w[0] == '#' || w[0] == '>' {
			break
		}
		words = append(words, strings.Trim(w, "'"))
	}
	return words
}

// runExample runs a line of a help, or of the README, if it is opscope reading a capture of
// this repository, or nothing. What captures live is not run here.
func runExample(t *testing.T, line string) {
	t.Helper()
	words := shellWords(line)
	command := strings.Join(words, " ")
	if len(words) == 0 || words[0] != "opscope" || words[1] == "sniff" || slices.Contains(words, "-i") || strings.Contains(command, "my/schema") || strings.Contains(command, "man ./man") {
		return
	}
	if out := good(t, words[1:]...); out == "" {
		t.Errorf("%s prints nothing", command)
	}
}
