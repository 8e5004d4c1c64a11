package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"opscope/dissect/sink"
	"opscope/dissect/verify"
	"opscope/schema"
)

func newSchema(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "schema",
		Short: "List, show and check the layouts of protocols",
		Args:  noSuchCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(paging(newSchemaList(s)), paging(newSchemaShow(s)), newSchemaCheck(s), newSchemaJSON(s))
	return c
}

func newSchemaList(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "list [PROTOCOL]",
		Short:   "List the protocols, or the packets of one",
		Example: "  opscope schema list\n  opscope schema list wulfram",
		Args:    argsBetween(0, 1),

		ValidArgsFunction: completeProtocol,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listProtocols(s.out)
			}
			p, err := schemaNamed(args[0])
			if err != nil {
				return err
			}
			return listPackets(s.out, p)
		},
	}
}

func schemaNamed(name string) (*schema.Protocol, error) {
	names := schema.BuiltinNames()
	if !slices.Contains(names, name) {
		return nil, usage("unknown protocol %q\ntry one of: %s", name, strings.Join(names, " "))
	}
	p, err := schema.Builtin(name)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return p, nil
}

// completeProtocol completes the name of a protocol, then that of a packet.
func completeProtocol(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return schema.BuiltinNames(), cobra.ShellCompDirectiveNoFileComp
	case 1:
		p, err := schemaNamed(args[0])
		if err != nil {
			break
		}
		var names []string
		for _, k := range p.Packets {
			names = append(names, k.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func listProtocols(w io.Writer) error {
	var rows [][]string
	for _, name := range schema.BuiltinNames() {
		p, err := schemaNamed(name)
		if err != nil {
			return err
		}
		rows = append(rows, []string{p.Name, fmt.Sprint(len(p.Packets)), portsText(p), p.Doc})
	}
	return sink.WriteTable(w, []string{"protocol", "packets", "ports", "what"}, rows)
}

func portsText(p *schema.Protocol) string {
	var ports []string
	for _, port := range p.Ports {
		ports = append(ports, fmt.Sprintf("%s %d", port.Transport, port.Number))
	}
	return strings.Join(ports, ", ")
}

func listPackets(w io.Writer, p *schema.Protocol) error {
	packets := slices.Clone(p.Packets)
	slices.SortStableFunc(packets, func(a, b *schema.Packet) int { return cmp.Compare(a.Opcode, b.Opcode) })
	var rows [][]string
	for _, k := range packets {
		body := "unknown"
		if len(k.Of(schema.Client))+len(k.Of(schema.Server)) > 0 {
			body = "known"
			if slices.ContainsFunc(k.Of(schema.Client), (*schema.Layout).Guessed) {
				body = "unknown"
			}
			if len(k.Of(schema.Server)) > 1 {
				body = fmt.Sprintf("%d layouts", len(k.Of(schema.Server)))
			}
		}
		rows = append(rows, []string{
			fmt.Sprintf("0x%02X", k.Opcode), k.Name, k.From.String(), k.Via.String(), body, k.Confidence.String(), k.Source,
		})
	}
	return sink.WriteTable(w, []string{"opcode", "packet", "from", "via", "body", "confidence", "source"}, rows)
}

func newSchemaShow(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "show PROTOCOL [PACKET]",
		Short: "Print the layout of a packet: types, widths, units, confidence and sources",
		Long: `show prints the layout of a packet, a line a field. A packet is named, or given by
its opcode in hexadecimal (0x0E) or decimal (14). Without one it prints what concerns
the protocol whole: envelopes, limits, and what is not settled, with the evidence.

In a width, ( ) is the expression in the brackets of the type. A number "by slot" 5
is as wide as slot 5 of state.translation says, which a packet teaches. A source
stands beside a field where it is not that of the whole layout.`,
		Example: "  opscope schema show wulfram UPDATE_ARRAY\n  opscope schema show wulfram 0x0E\n  opscope schema show lotr2",
		Args:    argsBetween(1, 2),

		ValidArgsFunction: completeProtocol,
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := schemaNamed(args[0])
			if err != nil {
				return err
			}
			width := textWidth(0, s.out)
			if width == 0 {
				width = defaultWidth
			}
			if len(args) == 1 {
				return showProtocol(s.out, width, p)
			}
			packets := packetsNamed(p, args[1])
			if len(packets) == 0 {
				return usage("%s has no packet %q%s\ntry: opscope schema list %s", p.Name, args[1], p.HintPacket(args[1]), p.Name)
			}
			for i, k := range packets {
				if i > 0 {
					fmt.Fprintln(s.out)
				}
				if err := showPacket(s.out, width, p, k); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// defaultWidth is the columns of a line where there is no terminal.
const defaultWidth = 120

// packetsNamed returns the packets with a name, or with an opcode.
func packetsNamed(p *schema.Protocol, word string) []*schema.Packet {
	opcode, err := strconv.ParseUint(word, 0, 64)
	var list []*schema.Packet
	for _, k := range p.Packets {
		if strings.EqualFold(k.Name, word) || err == nil && k.Opcode == opcode {
			list = append(list, k)
		}
	}
	return list
}

func showPacket(w io.Writer, width int, p *schema.Protocol, k *schema.Packet) error {
	fmt.Fprintf(w, "%s 0x%02X  %s\n", k.Name, k.Opcode, p.Name)
	for _, line := range [][2]string{
		{"from", k.From.String()}, {"via", k.Via.String()}, {"confidence", k.Confidence.String()}, {"source", k.Source},
		{"doc", k.Doc}, {"teaches", strings.Join(k.Teaches, ", ")},
	} {
		if line[1] != "" {
			writeHanging(w, width, fmt.Sprintf("  %-10s  ", line[0]), 14, line[1])
		}
	}
	showQuestions(w, width, k.Open)
	client, server := k.Of(schema.Client), k.Of(schema.Server)
	switch {
	case len(client) == 0 && len(server) == 0:
		_, err := fmt.Fprintln(w, "\nthe layout of the body is unknown")
		return err
	case len(client) > 0 && len(server) > 0 && client[0] != server[0]:
		if err := showLayouts(w, width, "from the client", client); err != nil {
			return err
		}
		return showLayouts(w, width, "from the server", server)
	case len(client) > 0:
		return showLayouts(w, width, "", client)
	}
	return showLayouts(w, width, "", server)
}

// showQuestions writes what is not settled, or was not.
func showQuestions(w io.Writer, width int, open []schema.Question) {
	for _, q := range open {
		writeHanging(w, width, "  open        ", 14, q.Question)
		if q.Answer != "" {
			writeHanging(w, width, "              so far: ", 16, q.Answer)
		}
		if q.Evidence != "" {
			writeHanging(w, width, "              evidence: ", 16, q.Evidence)
		}
	}
}

// showProtocol writes what concerns a protocol whole.
func showProtocol(w io.Writer, width int, p *schema.Protocol) error {
	fmt.Fprintln(w, p.Name)
	for _, line := range [][2]string{
		{"doc", p.Doc}, {"over", p.Over}, {"ports", portsText(p)}, {"order", p.Order.String()}, {"source", p.Source}, {"confidence", p.Confidence.String()},
	} {
		if line[1] != "" {
			writeHanging(w, width, fmt.Sprintf("  %-10s  ", line[0]), 14, line[1])
		}
	}
	for _, f := range p.Framings {
		writeHanging(w, width, "  framing     ", 14, fmt.Sprintf("%s: %s, %s", f.Name, f.Kind, f.Source))
	}
	for _, l := range p.Limits {
		writeHanging(w, width, "  limit       ", 14, strings.TrimSpace(fmt.Sprintf("%s = %d: %s", l.Name, l.Value, l.Doc)))
	}
	showQuestions(w, width, p.Open)
	for _, e := range p.Envelopes {
		fmt.Fprintf(w, "\nenvelope %s, %d bytes\n\n", e.Name, e.Size())
		if err := writeItems(w, width, e.Layout, e.Layout.Items()); err != nil {
			return err
		}
	}
	return nil
}

func showLayouts(w io.Writer, width int, title string, layouts []*schema.Layout) error {
	for i, l := range layouts {
		head := title
		if len(layouts) > 1 {
			head = strings.TrimSpace(fmt.Sprintf("%s reading %d of %d, %s", title, i+1, len(layouts), l.Source))
		}
		if head != "" {
			fmt.Fprintf(w, "\n%s\n", head)
		}
		items := l.Items()
		if l.Guessed() {
			fmt.Fprintln(w, "\nthe layout of the body is unknown; it is read as Protocol Buffers, by number and wire type")
			continue
		}
		if len(items) == 0 {
			fmt.Fprintln(w, "\nan empty body")
			continue
		}
		fmt.Fprintln(w)
		if err := writeItems(w, width, l, items); err != nil {
			return err
		}
	}
	return nil
}

// writeItems writes the fields of a layout in columns, and what is to be remarked
// on a field at the end of its line, or below it where there is no room.
func writeItems(w io.Writer, width int, l *schema.Layout, items []schema.Item) error {
	rows := [][]string{{"field", "type", "width", "unit", "confidence", "remarks"}}
	for _, it := range items {
		rows = append(rows, itemRow(it, l))
	}
	last := len(rows[0]) - 1
	columns := make([]int, last) // 0 for a column with nothing in it
	for i := range columns {
		for _, row := range rows[1:] {
			columns[i] = max(columns[i], len(row[i]))
		}
		if columns[i] > 0 {
			columns[i] = max(columns[i], len(rows[0][i]))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, n := range columns {
			if n > 0 {
				fmt.Fprintf(&line, "%-*s  ", n, row[i])
			}
		}
		indent := len(row[0]) - len(strings.TrimLeft(row[0], " ")) + 4
		if head := line.String(); len(head)+len(row[last]) <= width {
			b.WriteString(strings.TrimRight(head+row[last], " ") + "\n")
		} else {
			b.WriteString(strings.TrimRight(head, " ") + "\n")
			writeHanging(&b, width, strings.Repeat(" ", indent), indent, row[last])
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeHanging writes words behind a head, in lines of a width that begin at an
// indent from the second on.
func writeHanging(w io.Writer, width int, head string, indent int, words string) {
	line := head
	for i, word := range strings.Fields(words) {
		switch {
		case i == 0:
			line += word
		case len(line)+1+len(word) > width:
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", indent) + word
		default:
			line += " " + word
		}
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// itemRow returns the columns of one field.
func itemRow(it schema.Item, l *schema.Layout) []string {
	indent := strings.Repeat("  ", it.Depth)
	f := it.Field
	if f == nil || f.Name == "" && it.Label != "" {
		return []string{indent + it.Label, "", "", "", "", ""}
	}
	var remarks []string
	if it.Condition != "" {
		remarks = append(remarks, "if "+it.Condition)
	}
	if it.Label != "" {
		remarks = append(remarks, it.Label)
	}
	if f.Scale != 0 {
		remarks = append(remarks, fmt.Sprintf("times %g", f.Scale))
	}
	switch f.Redact {
	case schema.Secret:
		remarks = append(remarks, "secret")
	case schema.Personal:
		remarks = append(remarks, "personal")
	}
	if f.Doc != "" {
		remarks = append(remarks, f.Doc)
	}
	if f.Source != "" && f.Source != l.Source {
		remarks = append(remarks, "source "+f.Source)
	}
	return []string{indent + f.Name, f.Type, shortWidth(it.Width, f.Type), f.Unit, f.Confidence.String(), strings.Join(remarks, "; ")}
}

// shortWidth returns a width with ( ) in the place of a longer expression, if that
// stands in the brackets of the type.
func shortWidth(width, typ string) string {
	_, brackets, _ := strings.Cut(typ, "(")
	end := strings.LastIndexByte(brackets, ')')
	if end <= len("( )") {
		return width
	}
	expression := brackets[:end]
	if bits, ok := strings.CutPrefix(width, expression); ok {
		return "( )" + bits
	}
	if by, ok := strings.CutSuffix(width, " slot "+expression); ok {
		return by + " slot ( )"
	}
	return width
}

func newSchemaCheck(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE|DIR...]",
		Short: "Check schema files; without arguments, the built-in ones",
		Example: `  opscope schema check
  opscope schema check my/schema/`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return checkBuiltin(s.out)
			}
			var failed error
			for _, a := range args {
				if err := checkPath(s.out, a); err != nil {
					complain(s.err, err.Error())
					failed = &exitError{exitUsage, errors.New("")}
				}
			}
			return failed
		},
	}
}

// checkBuiltin checks the built-in files as if they were a user's: what Builtin returns is
// checked when it is used.
func checkBuiltin(w io.Writer) error {
	for _, name := range schema.BuiltinNames() {
		all, err := schema.Load(schema.BuiltinFiles(), path.Join("protocols", name))
		if err != nil {
			return &exitError{exitUsage, err}
		}
		fmt.Fprintf(w, "%s: %d packets, good\n", all[0].Name, len(all[0].Packets))
	}
	return nil
}

// checkPath checks a file, or the files of a directory together.
func checkPath(w io.Writer, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	var all []*schema.Protocol
	if info.IsDir() {
		all, err = schema.Load(os.DirFS(path), ".")
	} else {
		all, err = schema.LoadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	}
	if err != nil {
		return err
	}
	for _, p := range all {
		fmt.Fprintf(w, "%s: %s: %d packets, good\n", path, p.Name, len(p.Packets))
	}
	return nil
}

func newSchemaJSON(s streams) *cobra.Command {
	texts := map[string]string{"ndjson": sink.JSONSchema, "notation": string(schema.NotationSchema), "spec": verify.SpecSchema}
	return &cobra.Command{
		Use:       "json ndjson|notation|spec",
		Short:     "Print the JSON Schema of the NDJSON lines, of the notation of schema files, or of the specs of verify",
		Example:   "  opscope schema json ndjson > opscope.schema.json",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"ndjson", "notation", "spec"},
		RunE: func(_ *cobra.Command, args []string) error {
			_, err := io.WriteString(s.out, texts[args[0]])
			return err
		},
	}
}
