package netrek

import (
	"net/netip"
	"strconv"
	"strings"

	"opscope/dissect"
	"opscope/schema"
)

// What CP_UDP_REQ asks for and SP_UDP_REPLY says, section 6.7.
const (
	udpTCP    = 0
	udpUDP    = 1
	udpVerify = 3 // of a reply; a request has 2
)

// on is the request of CP_S_REQ that turns short packets on.
const shortOn = 1

// asked is a version of short packets that the client asked for.
type asked struct {
	version uint64
	packet  int
}

// pair is the UDP ports of client and server, 0 while one is not told.
type pair struct{ client, server uint16 }

// assume puts the stated defaults in force. They are copied, because the session
// writes to them.
func (c *conversation) assume() {
	for i, t := range c.state.Tables {
		stated := c.schema.DefaultTable(t.Decl.Name, schema.AnySender)
		if stated == nil {
			continue
		}
		for _, k := range stated.Keys() {
			c.state.Tables[i].Set(k, *stated.Get(k))
		}
	}
}

// lessons are what packets teach, by their direction and type.
var lessons = [...][256]func(*conversation, *dissect.Record){
	dissect.UnknownDirection: {},
	dissect.ClientToServer: {
		cpSocket:  (*conversation).learnStart,
		cpFeature: (*conversation).learnRequest,
		cpSReq:    (*conversation).learnShort,
		cpUDPReq:  (*conversation).learnUDPRequest,
	},
	dissect.ServerToClient: {
		spFeature:  (*conversation).learnFeature,
		spSReply:   (*conversation).learnShortReply,
		spUDPReply: (*conversation).learnUDPReply,
	},
}

// learn takes what a packet teaches.
func (c *conversation) learn(r *dissect.Record, d dissect.Direction) {
	if lesson := lessons[d][byte(r.Opcode)]; lesson != nil {
		lesson(c, r)
	}
}

// learnStart takes the packet that begins a session.
func (c *conversation) learnStart(*dissect.Record) { c.session.Joined = false }

// packetOf returns the number of the packet that completed r.
func packetOf(r *dissect.Record) int {
	if len(r.Packets) == 0 {
		return 0
	}
	return r.Packets[len(r.Packets)-1]
}

// set puts an entry of one value into a learned table.
func (c *conversation) set(table string, key int64, value float64, packet int) {
	c.state.Table(table).Set(key, schema.Entry{Values: []float64{value}, Origin: schema.Learned, Packet: packet})
}

// value returns the entry of a learned table, 0 without one.
func (c *conversation) value(table string, key int64) float64 {
	if e := c.state.Table(table).Get(key); e != nil && len(e.Values) > 0 {
		return e.Values[0]
	}
	return 0
}

// featureName returns the name in a feature packet, in the capitals of the table.
func featureName(r *dissect.Record) string {
	i := r.Body.Field("name")
	if i < 0 {
		return ""
	}
	return strings.ToUpper(string(r.Body.AppendText(nil, i)))
}

// learnRequest takes a feature that the client names: of SP_GENERIC_32 the highest
// version it knows. All others count only once the server answers.
func (c *conversation) learnRequest(r *dissect.Record) {
	c.features = true
	if featureName(r) == "SP_GENERIC_32" {
		version, _ := r.Body.Value("arg1")
		c.set("generic_32", 0, float64(int8(version)), packetOf(r))
	}
}

// learnFeature takes the server's answer.
func (c *conversation) learnFeature(r *dissect.Record) {
	value, _ := r.Body.Value("value")
	if key, ok := c.featureKey(featureName(r)); ok {
		c.set("features", key, float64(int32(value)), packetOf(r))
	}
}

const (
	// unlisted is the first key of features that the schema does not list.
	unlisted = 1000
	// maxUnlisted is how many of them a session keeps.
	maxUnlisted = 64
)

// featureKey returns the key of a feature in the table. One that the schema does not
// list gets a key of its own, under its name.
func (c *conversation) featureKey(name string) (key int64, ok bool) {
	t := c.state.Table("features")
	names := t.Decl.KeyEnum
	if v, ok := names.ValueOf(name); ok {
		return int64(v), true
	}
	next := uint64(unlisted)
	for _, v := range names.Values {
		next = max(next, v.Value+1)
	}
	if name == "" || next >= unlisted+maxUnlisted {
		return 0, false
	}
	decl := *t.Decl
	decl.KeyEnum = schema.NewEnum(names.Name, append(names.Values[:len(names.Values):len(names.Values)], schema.Name{Value: next, Name: name}))
	own := schema.NewTable(&decl)
	for _, k := range t.Keys() {
		own.Set(k, *t.Get(k))
	}
	c.state.Replace(own)
	return int64(next), true
}

// learnShort takes a request for short packets. Where none are on it counts at once:
// short packets may come before the reply. A change of version waits for it.
func (c *conversation) learnShort(r *dissect.Record) {
	req, _ := r.Body.Value("req")
	version, _ := r.Body.Value("version")
	if req != shortOn {
		return
	}
	c.asked = asked{version, packetOf(r)}
	if c.value("short_version", 0) == 0 {
		c.set("short_version", 0, float64(version), packetOf(r))
	}
}

// learnShortReply takes the proof that short packets are on.
func (c *conversation) learnShortReply(r *dissect.Record) {
	if repl, _ := r.Body.Value("repl"); repl == shortOn && c.asked.version != 0 {
		c.set("short_version", 0, float64(c.asked.version), c.asked.packet)
	}
}

// maxPairs is how many pairs of ports a session remembers, for datagrams that come
// late.
const maxPairs = 8

// learnUDPRequest takes the port that a client wants datagrams at.
func (c *conversation) learnUDPRequest(r *dissect.Record) {
	request, _ := r.Body.Value("request")
	port, _ := r.Body.Value("port")
	if request != udpUDP || port == 0 || port > 0xffff {
		return
	}
	if len(c.pairs) == maxPairs {
		c.pairs = append(c.pairs[:0], c.pairs[1:]...)
	}
	c.pairs = append(c.pairs, pair{client: uint16(port)})
	c.set("udp_ports", int64(schema.Client), float64(port), packetOf(r))
	c.session.Expect(netip.AddrPortFrom(r.Src.Addr(), uint16(port)), schema.Client)
	c.session.Learned()
}

// learnUDPReply takes the port of the server. It is told over TCP, and in connmode 1
// by a datagram before that.
func (c *conversation) learnUDPReply(r *dissect.Record) {
	reply, _ := r.Body.Value("reply")
	port, _ := r.Body.Value("port")
	if reply != udpUDP || port == 0 || port > 0xffff {
		return
	}
	if len(c.pairs) == 0 {
		c.pairs = append(c.pairs, pair{})
	}
	c.pairs[len(c.pairs)-1].server = uint16(port)
	c.set("udp_ports", int64(schema.Server), float64(port), packetOf(r))
	c.session.Expect(netip.AddrPortFrom(r.Src.Addr(), uint16(port)), schema.Server)
	c.session.Learned()
}

// Claim compares the ends of a datagram with the ports that were agreed on: both, or
// that of the server where the client's was changed on the way, or that of the client
// while the server's is not told.
func (c *conversation) Claim(d *dissect.Datagram) dissect.Claim {
	own := d.Flow.Session == c.session
	if c.text || textPacket(c.schema, d.Data) != nil {
		if own {
			return dissect.Maybe
		}
		return dissect.Disowned
	}
	if len(c.pairs) == 0 {
		return dissect.Maybe
	}
	for i := len(c.pairs) - 1; i >= 0; i-- {
		for side := range 2 {
			if c.pairs[i].joins(c.session, d.Flow.Ends[side], d.Flow.Ends[1-side]) {
				return dissect.Owned
			}
		}
	}
	if own && c.session.Joined {
		return dissect.Maybe
	}
	return dissect.Disowned
}

// joins reports whether a flow between two ends is one with these ports.
func (p pair) joins(s *dissect.Session, client, server netip.AddrPort) bool {
	if client.Addr() != s.Client.Addr() || server.Addr() != s.Server.Addr() {
		return false
	}
	if p.server == 0 {
		return client.Port() == p.client
	}
	return server.Port() == p.server
}

// Tables returns what the session has learned.
func (c *conversation) Tables() []dissect.LearnedTable {
	if c.text {
		return nil
	}
	var list []dissect.LearnedTable
	for _, t := range c.state.Tables {
		list = append(list, dissect.LearnedTable{Table: t})
	}
	return list
}

// remark notes what is odd about a packet that its layout does not say: what other
// programs make of it, section 10.1.
func (c *conversation) remark(r *dissect.Record, d dissect.Direction) {
	if d != dissect.ServerToClient {
		return
	}
	switch r.Opcode {
	case spGeneric32:
		c.remarkGeneric32(r)
	case spYou:
		// Conflict 2. Whoever names features is a client, and no such probe.
		if !c.seenYou && !c.features && !c.session.Joined && r.Err == nil {
			r.Note("struct_size_differs", "a metaserver's probe built for 64 bits takes it for 48 bytes, and what follows for something else")
		}
		c.seenYou = true
	}
}

// remarkGeneric32 says in which byte order version a was read: it has the server's
// own, which nothing on the wire tells. Conflict 4.
func (c *conversation) remarkGeneric32(r *dissect.Record) {
	version, ok := r.Body.Value("version")
	if !ok || r.Err != nil {
		return
	}
	number := int(version) - 0x60
	if known := c.state.Table("generic_32").Get(0); known != nil && number > max(1, int(known.Values[0])) {
		r.Note("not_negotiated", "version "+strconv.Itoa(number)+", the client knows "+strconv.Itoa(int(known.Values[0])))
	}
	if number != 1 {
		return
	}
	layouts := r.Packet.Of(schema.Server)
	switch {
	case r.Layout != layouts[0]:
		r.Note("host_byte_order", "read as big-endian, because little-endian gives no planet")
	case len(layouts) > 1 && c.fits(r.Packet, layouts[1], r.Raw):
		r.Note("host_byte_order", "read as little-endian; big-endian would do as well")
	default:
		r.Note("host_byte_order", "read as little-endian; big-endian gives no planet")
	}
}
