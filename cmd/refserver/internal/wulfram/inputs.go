package wulfram

// The action channels that this package uses (section 8.3). Channels 0 to 7 but 4
// are analogue, the others buttons.
const (
	channels        = 22 // 0 to 21; a dump has 1 to 21
	channelTurn     = 1
	channelForward  = 2
	channelStrafe   = 3
	channelJump     = 4
	channelJets     = 5
	channelTilt     = 6
	channelRoll     = 7
	channelPrimary  = 8
	firstPlainInput = 8 // from here on all are buttons
)

// channelNames are the words of scripts.
var channelNames = map[string]int{
	"turn": channelTurn, "forward": channelForward, "strafe": channelStrafe, "jump": channelJump, "jets": channelJets,
	"tilt": channelTilt, "roll": channelRoll, "fire": channelPrimary, "pulse": 12, "piercer": 13, "thumper": 14,
	"caltrop": 15, "hunter": 16, "mine": 17, "flare": 18, "maser": 19,
}

// inputs are the values of all channels.
type inputs [channels]float64

// button reports whether a channel is on or off, and nothing between.
func button(channel int) bool { return channel == channelJump || channel >= firstPlainInput }

// input returns a channel's value as the wire carries it.
func (w widths) input(channel int, value float64) any {
	switch {
	case button(channel) && value != 0:
		return 1
	case button(channel):
		return 0
	case channel == channelJets:
		return w[slotJetStrength].scalar(value)
	}
	return w[slotAnalogue].scalar(value)
}

// set takes the value of a channel from the tree node at index i.
func (in *inputs) set(channel int, v values, i int) {
	if channel < 0 || channel >= channels || i < 0 {
		return
	}
	in[channel] = min(max(v.Nodes[i].Float(), -1), 1)
}

// dumped takes an ACTION_DUMP, changed an ACTION_UPDATE.
func (in *inputs) dumped(v values) {
	for k, i := range v.elements("values") {
		in.set(k+1, v, i)
	}
}

func (in *inputs) changed(v values) {
	for _, i := range v.elements("changes") {
		in.set(v.member(i, "channel"), v, v.Member(i, "value"))
	}
}
