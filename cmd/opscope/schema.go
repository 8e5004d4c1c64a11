package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"opscope/dissect/sink"
	"opscope/schema"
)

func newSchema(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "schema",
		Short: "List, show and check the layouts of protocols",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newSchemaList(s), newSchemaShow(s), newSchemaCheck(s))
	return c
}

func newSchemaList(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "list [PROTOCOL]",
		Short:   "List the protocols, or the packets of one",
		Example: "  opscope schema list\n  opscope schema list wulfram",
		Args:    cobra.MaximumNArgs(1),
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
	for _, n := range names {
		if n == name {
			p, err := schema.Builtin(n)
			if err != nil {
				return nil, &exitError{exitUsage, err}
			}
			return p, nil
		}
	}
	return nil, usage("unknown protocol %q\ntry one of: %s", name, strings.Join(names, " "))
}

func listProtocols(w io.Writer) error {
	var rows [][]string
	for _, name := range schema.BuiltinNames() {
		p, err := schemaNamed(name)
		if err != nil {
			return err
		}
		var ports []string
		for _, port := range p.Ports {
			ports = append(ports, fmt.Sprintf("%s %d", port.Transport, port.Number))
		}
		rows = append(rows, []string{p.Name, fmt.Sprint(len(p.Packets)), strings.Join(ports, ", "), p.Doc})
	}
	return sink.WriteTable(w, []string{"protocol", "packets", "ports", "what"}, rows)
}

func listPackets(w io.Writer, p *schema.Protocol) error {
	var rows [][]string
	for _, k := range p.Packets {
		body := "unknown"
		if n := len(k.Of(schema.Client)) + len(k.Of(schema.Server)); n > 0 || k.Proto != "" {
			body = "known"
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
		Use:     "show PROTOCOL PACKET",
		Short:   "Print the layout of a packet: types, widths, units, confidence and sources",
		Example: "  opscope schema show wulfram UPDATE_ARRAY\n  opscope schema show wulfram 0x0E",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := schemaNamed(args[0])
			if err != nil {
				return err
			}
			k := p.PacketNamed(args[1])
			var opcode uint64
			if _, err := fmt.Sscanf(args[1], "0x%x", &opcode); k == nil && err == nil {
				k = p.Packet(opcode, schema.AnySender, schema.UDP)
			}
			if k == nil {
				return usage("%s has no packet %q%s\ntry: opscope schema list %s", p.Name, args[1], p.HintPacket(args[1]), p.Name)
			}
			return showPacket(s.out, p, k)
		},
	}
}

func showPacket(w io.Writer, p *schema.Protocol, k *schema.Packet) error {
	fmt.Fprintf(w, "%s 0x%02X  %s\n", k.Name, k.Opcode, p.Name)
	for _, line := range [][2]string{
		{"from", k.From.String()}, {"via", k.Via.String()}, {"confidence", k.Confidence.String()}, {"source", k.Source},
		{"doc", k.Doc}, {"teaches", strings.Join(k.Teaches, ", ")},
	} {
		if line[1] != "" {
			fmt.Fprintf(w, "  %-10s  %s\n", line[0], line[1])
		}
	}
	for _, q := range k.Open {
		fmt.Fprintf(w, "  open        %s\n", q.Question)
		if q.Answer != "" {
			fmt.Fprintf(w, "              so far: %s\n", q.Answer)
		}
		if q.Evidence != "" {
			fmt.Fprintf(w, "              evidence: %s\n", q.Evidence)
		}
	}
	client, server := k.Of(schema.Client), k.Of(schema.Server)
	switch {
	case len(client) == 0 && len(server) == 0:
		_, err := fmt.Fprintln(w, "\nthe layout of the body is unknown")
		return err
	case len(client) > 0 && len(server) > 0 && client[0] != server[0]:
		if err := showLayouts(w, "from the client", client); err != nil {
			return err
		}
		return showLayouts(w, "from the server", server)
	case len(client) > 0:
		return showLayouts(w, "", client)
	}
	return showLayouts(w, "", server)
}

func showLayouts(w io.Writer, title string, layouts []*schema.Layout) error {
	for i, l := range layouts {
		head := title
		if len(layouts) > 1 {
			head = strings.TrimSpace(fmt.Sprintf("%s reading %d of %d, %s", title, i+1, len(layouts), l.Source))
		}
		if head != "" {
			fmt.Fprintf(w, "\n%s\n", head)
		}
		items := l.Items()
		if len(items) == 0 {
			fmt.Fprintln(w, "\nan empty body")
			continue
		}
		var rows [][]string
		for _, it := range items {
			rows = append(rows, itemRow(it))
		}
		fmt.Fprintln(w)
		if err := sink.WriteTable(w, []string{"field", "type", "width", "unit", "confidence", "source", "remarks"}, rows); err != nil {
			return err
		}
	}
	return nil
}

func itemRow(it schema.Item) []string {
	indent := strings.Repeat("  ", it.Depth)
	if it.Field == nil {
		return []string{indent + it.Label, "", "", "", "", "", ""}
	}
	var remarks []string
	if it.Condition != "" {
		remarks = append(remarks, "if "+it.Condition)
	}
	if it.Label != "" {
		remarks = append(remarks, it.Label)
	}
	if it.Field.Scale != 0 {
		remarks = append(remarks, fmt.Sprintf("times %g", it.Field.Scale))
	}
	switch it.Field.Redact {
	case schema.Secret:
		remarks = append(remarks, "secret")
	case schema.Personal:
		remarks = append(remarks, "personal")
	}
	if it.Field.Doc != "" {
		remarks = append(remarks, it.Field.Doc)
	}
	return []string{
		indent + it.Field.Name, it.Field.Type, it.Width, it.Field.Unit, it.Field.Confidence.String(), it.Field.Source,
		strings.Join(remarks, "; "),
	}
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
					fmt.Fprintln(s.err, "opscope: "+err.Error())
					failed = &exitError{exitUsage, errors.New("")}
				}
			}
			return failed
		},
	}
}

func checkBuiltin(w io.Writer) error {
	for _, name := range schema.BuiltinNames() {
		p, err := schemaNamed(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %d packets, good\n", p.Name, len(p.Packets))
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
