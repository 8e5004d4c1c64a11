package filter

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// explain returns the error of an expression, with what was meant where that shows: a
// capture filter, a name that Wireshark has, an address without quotes, a single =.
func (l *Language) explain(expression string, err error) error {
	switch {
	case isCaptureFilter(expression):
		return errors.New(captureFilterText(expression))
	case wiresharkName().MatchString(expression):
		word := wiresharkName().FindString(expression)
		return fmt.Errorf("%w\n%s is Wireshark's; here: %s", err, word, wiresharkNames[word])
	case bareAddress().MatchString(expression):
		return fmt.Errorf("%w\naddresses and times stand in quotes: src == \"10.0.0.2\"", err)
	case strings.Contains(err.Error(), `Operator("=")`):
		return fmt.Errorf("%w\n== compares", err)
	}
	return err
}

// captureWords are what a capture filter is made of (pcap-filter(7)), beside numbers
// and addresses.
var captureWords = strings.Fields("tcp udp icmp icmp6 ip ip6 arp ether vlan host net port portrange src dst " +
	"proto less greater broadcast multicast and or not && || !")

// captureValue is a number or an address. Expressions are compiled when one is needed, and
// not at each start.
var captureValue = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d+(-\d+)?|[\d.]+(/\d+)?|[0-9a-fA-F:]*:[0-9a-fA-F:]*(/\d+)?)$`)
})

// isCaptureFilter reports whether an expression is made of the words of a capture
// filter, and of at least one that a display filter has not.
func isCaptureFilter(expression string) bool {
	named := false
	for _, word := range strings.FieldsFunc(expression, func(r rune) bool { return strings.ContainsRune(" \t()", r) }) {
		switch {
		case slices.Contains(captureWords, word):
			named = named || !slices.Contains([]string{"and", "or", "not", "&&", "||", "!"}, word)
		case !captureValue().MatchString(word):
			return false
		}
	}
	return named
}

func captureFilterText(expression string) string {
	text := fmt.Sprintf("%q is a capture filter (BPF, as tcpdump and -f have it); -Y wants a display filter", expression)
	if same := translate(expression); same != "" {
		text += "\ntry: " + same
	}
	return text
}

// primitive is one test of a capture filter with what a display filter has for.
var primitive = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(tcp|udp)\b *)?(?:(src|dst)\b *)?(?:(port|host)? *([\d.]+|[0-9a-fA-F:]*:[0-9a-fA-F:]*))?$`)
})

// translate returns a display filter for a simple capture filter, else "".
func translate(expression string) string {
	m := primitive().FindStringSubmatch(strings.Join(strings.Fields(expression), " "))
	if m == nil || m[1] == "" && m[4] == "" || m[2] != "" && m[4] == "" {
		return ""
	}
	var parts []string
	if m[1] != "" {
		parts = append(parts, "transport == "+m[1])
	}
	if m[4] != "" {
		test := func(side string) string {
			if m[3] == "port" {
				return side + ".port == " + m[4]
			}
			return side + ` == "` + m[4] + `"`
		}
		switch {
		case m[2] != "":
			parts = append(parts, test(m[2]))
		case len(parts) > 0:
			parts = append(parts, "("+test("src")+" or "+test("dst")+")")
		default:
			parts = append(parts, test("src")+" or "+test("dst"))
		}
	}
	return strings.Join(parts, " and ")
}

var wiresharkNames = map[string]string{
	"tcp.port": "src.port and dst.port, with transport == tcp", "udp.port": "src.port and dst.port, with transport == udp",
	"tcp.srcport": "src.port", "tcp.dstport": "dst.port", "udp.srcport": "src.port", "udp.dstport": "dst.port",
	"ip.addr": "src and dst", "ip.src": "src", "ip.dst": "dst", "ipv6.addr": "src and dst", "ipv6.src": "src", "ipv6.dst": "dst",
	"frame.number": "packets", "frame.time": "time",
}

var (
	wiresharkName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(?:(?:tcp|udp)\.(?:port|srcport|dstport)|ip(?:v6)?\.(?:addr|src|dst)|frame\.(?:number|time))\b`)
	})
	bareAddress = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[^"'\d.])\d+\.\d+\.\d+|==\s*\d{4}-\d\d-\d\d`)
	})
)
