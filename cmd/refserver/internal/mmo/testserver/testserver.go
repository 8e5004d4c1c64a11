// Package testserver is what opscope's own MMO server and its bots have chosen
// where protocols/mmo.md leaves a question open: numbers in server.yaml, bodies of
// messages in messages/testserver.proto, and which packet has which in
// messages/ids.yaml. Nothing in it is a fact about the game, and no dissector may
// depend on it.
package testserver

import (
	"embed"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
)

//go:embed messages
var messages embed.FS

// MessagesDir is the directory in the files of Messages.
const MessagesDir = "messages"

// Messages returns the bodies of messages whose schema nobody knows, as schema files.
func Messages() fs.FS { return messages }

//go:embed server.yaml
var defaults []byte

// Order is "little" or "big".
type Order string

// The byte orders.
const (
	Little Order = "little"
	Big    Order = "big"
)

// Transport is "tcp" or "udp".
type Transport string

// The transports.
const (
	TCP Transport = "tcp"
	UDP Transport = "udp"
)

// Settings are the numbers that the server and its bots have chosen. server.yaml says
// what each is for.
type Settings struct {
	ByteOrder Order  `yaml:"byte_order"`
	TCPPort   uint16 `yaml:"tcp_port"`
	UDPPort   uint16 `yaml:"udp_port"`

	Heartbeat struct {
		Interval time.Duration `yaml:"interval"`
		Timeout  time.Duration `yaml:"timeout"`
	} `yaml:"heartbeat"`

	MaxPacketsPerSecond int `yaml:"max_packets_per_second"`
	MaxErrors           int `yaml:"max_errors"`

	EnterToken struct {
		Issuer   string        `yaml:"issuer"`
		Key      string        `yaml:"key"`
		Lifetime time.Duration `yaml:"lifetime"`
		Attempts int           `yaml:"attempts"`
	} `yaml:"enter_token"`

	UDPToken struct {
		Bytes    int           `yaml:"bytes"`
		Lifetime time.Duration `yaml:"lifetime"`
	} `yaml:"udp_token"`

	Hello struct {
		Retry    time.Duration `yaml:"retry"`
		Attempts int           `yaml:"attempts"`
	} `yaml:"hello"`

	Deprecated struct {
		Error   string `yaml:"error"`
		Message string `yaml:"message"`
	} `yaml:"deprecated"`

	MoveNotify Transport `yaml:"move_notify"`

	World     World     `yaml:"world"`
	Combat    Combat    `yaml:"combat"`
	Monsters  Monsters  `yaml:"monsters"`
	Inventory Inventory `yaml:"inventory"`
}

// World is the place. Lengths are in metres, speeds in metres per second.
type World struct {
	Size  float64 `yaml:"size"`
	Spawn float64 `yaml:"spawn"`
	Speed float64 `yaml:"speed"`
	View  float64 `yaml:"view"`
	Leave float64 `yaml:"leave"`
	Chat  int     `yaml:"chat"`
}

// Combat is how characters fight.
type Combat struct {
	CharacterHP int           `yaml:"character_hp"`
	Reach       float64       `yaml:"reach"`
	Damage      int           `yaml:"damage"`
	Combo       int           `yaml:"combo"`
	Cooldown    time.Duration `yaml:"cooldown"`
	Respawn     time.Duration `yaml:"respawn"`
}

// Monsters is how many there are, and how they fight.
type Monsters struct {
	Count    int           `yaml:"count"`
	HP       int           `yaml:"hp"`
	Sight    float64       `yaml:"sight"`
	Reach    float64       `yaml:"reach"`
	Damage   int           `yaml:"damage"`
	Interval time.Duration `yaml:"interval"`
	Speed    float64       `yaml:"speed"`
}

// Inventory is what a character carries.
type Inventory struct {
	Capacity int `yaml:"capacity"`
	Items    int `yaml:"items"`
	Stack    int `yaml:"stack"`
	Remember int `yaml:"remember"`
}

// Default returns the settings of server.yaml, which are the caller's to change.
func Default() *Settings {
	s := usual()
	return &s
}

// usual is the settings of server.yaml. It panics if they are wrong, which is a
// programmer's mistake.
var usual = sync.OnceValue(func() Settings {
	s, err := Parse(defaults)
	if err != nil {
		panic(err)
	}
	return *s
})

// Parse reads settings in YAML. What the text leaves out is as in server.yaml; a key
// that does not exist is an error with its place.
func Parse(text []byte) (*Settings, error) {
	s := &Settings{}
	for _, t := range [][]byte{defaults, text} {
		if err := yaml.UnmarshalWithOptions(t, s, yaml.Strict()); err != nil {
			return nil, fmt.Errorf("settings: %s", yaml.FormatError(err, false, false)) // in one line, with the place
		}
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, nil
}

// check refuses what no server can work with.
func (s *Settings) check() error {
	rules := []struct {
		key  string
		good bool
	}{
		{"byte_order", s.ByteOrder == Little || s.ByteOrder == Big},
		{"udp_port", s.UDPPort > 0},
		{"heartbeat.interval", s.Heartbeat.Interval > 0},
		{"heartbeat.timeout", s.Heartbeat.Timeout >= s.Heartbeat.Interval},
		{"max_packets_per_second", s.MaxPacketsPerSecond > 0},
		{"max_errors", s.MaxErrors > 0},
		{"enter_token.attempts", s.EnterToken.Attempts > 0},
		{"enter_token.lifetime", s.EnterToken.Lifetime > 0},
		{"udp_token.bytes", s.UDPToken.Bytes > 0 && s.UDPToken.Bytes <= 1024},
		{"udp_token.lifetime", s.UDPToken.Lifetime > 0},
		{"hello.retry", s.Hello.Retry > 0},
		{"hello.attempts", s.Hello.Attempts > 0},
		{"deprecated.error", s.Deprecated.Error != ""},
		{"move_notify", s.MoveNotify == TCP || s.MoveNotify == UDP},
		{"world.size", s.World.Size > 0},
		{"world.spawn", s.World.Spawn > 0 && s.World.Spawn <= s.World.Size/2},
		{"world.speed", s.World.Speed > 0},
		{"world.view", s.World.View > 0},
		{"world.leave", s.World.Leave >= s.World.View},
		{"world.chat", s.World.Chat > 0},
		{"combat.character_hp", s.Combat.CharacterHP > 0},
		{"combat.combo", s.Combat.Combo > 0},
		{"combat.damage", s.Combat.Damage > 0},
		{"monsters.count", s.Monsters.Count >= 0},
		{"monsters.hp", s.Monsters.HP > 0},
		{"monsters.damage", s.Monsters.Damage > 0},
		{"monsters.interval", s.Monsters.Interval > 0},
		{"inventory.capacity", s.Inventory.Capacity > 0 && s.Inventory.Capacity <= 500},
		{"inventory.items", s.Inventory.Items >= 0 && s.Inventory.Items <= s.Inventory.Capacity},
		{"inventory.stack", s.Inventory.Stack > 0},
		{"inventory.remember", s.Inventory.Remember > 0},
	}
	for _, r := range rules {
		if !r.good {
			return fmt.Errorf("settings: %s is not what a server can work with", r.key)
		}
	}
	return nil
}
