package testserver

import (
	"strings"
	"testing"
	"time"
)

func TestDefaults(t *testing.T) {
	s := Default()
	if s.TCPPort != 7777 || s.UDPPort != 7778 || s.Heartbeat.Interval != 5*time.Second || s.MoveNotify != TCP || s.Inventory.Remember != 16 {
		t.Errorf("got %+v", s)
	}
}

func TestParse(t *testing.T) {
	s, err := Parse([]byte("heartbeat: {interval: 1s}\nmove_notify: udp\n"))
	if err != nil || s.Heartbeat.Interval != time.Second || s.Heartbeat.Timeout != 15*time.Second || s.MoveNotify != UDP {
		t.Errorf("got %+v, %v", s, err)
	}
	for name, test := range map[string]struct{ text, want string }{
		"a key that does not exist":  {"heartbeat: {every: 1s}", "every"},
		"no duration":                {"heartbeat: {interval: soon}", "soon"},
		"a transport that is none":   {"move_notify: pigeon", "move_notify"},
		"a timeout that is too soon": {"heartbeat: {timeout: 1s}", "heartbeat.timeout"},
		"a list":                     {"- 1", "settings"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s in it", err, test.want)
			}
		})
	}
}
