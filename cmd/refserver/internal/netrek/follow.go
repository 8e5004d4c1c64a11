package netrek

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

// follow does the commands of the script until it has to wait.
func (b *bot) follow(now time.Time) {
	for b.Leaving.IsZero() && !b.Over && !b.Waits(now) {
		c, more := b.Script.Next()
		if !more {
			b.leave(now)
			return
		}
		b.do(now, c)
		b.Script.DoneAt(now)
	}
}

// await has the script wait for something, not forever.
func (b *bot) await(now time.Time, w waiting) {
	b.waiting, b.Until = w, now.Add(patience)
}

// got tells that something has come which the script may wait for.
func (b *bot) got(w waiting) {
	if b.waiting == w {
		b.Until = time.Time{}
	}
}

func (b *bot) leave(now time.Time) {
	b.Leaving = now
	b.tell("CP_BYE", nil)
}

// do does one command, which was checked when it was read.
func (b *bot) do(now time.Time, c Command) {
	text := strings.Join(c.Words, " ")
	switch c.Verb {
	case "wait":
		d, _ := time.ParseDuration(c.Words[0])
		b.Script.Sleep(now.Add(d))
	case "leave":
		b.leave(now)
	case "outfit":
		b.outfit(now, c)
	case "await":
		b.awaits(now, c)
	case "feature":
		b.askFeature(c.Words[0])
	case "udp", "tcp", "mode":
		b.ask(now, c)
	case "short":
		b.askShort(now, c)
	case "say":
		b.say(messageAll, 0, text)
	case "team-say":
		b.say(messageTeam, b.ships[max(0, b.slot)].team, text)
	case "tell":
		n, _ := strconv.Atoi(c.Words[0])
		b.say(messageIndiv, n, strings.Join(c.Words[1:], " "))
	case "raw":
		data, _ := unhex(c.Words[0])
		b.flush() // a server throws away what comes behind it at once
		b.tcp.Add(&b.clerk.Desk, machine.Record{Opcode: -1, Size: len(data), Mode: -1, Seq: -1, Length: -1, Opaque: true,
			Body: schema.NewTree(schema.Values{"opaque": data}), Note: "bytes that are no packet"}, data)
		b.flush()
	default:
		b.order(c)
	}
}

// order sends what is one packet.
func (b *bot) order(c Command) {
	number := 0
	if len(c.Words) > 0 {
		if n, ok := choices[c.Verb][c.Words[0]]; ok {
			number = n
		} else if c.Words[0] == "enemy" {
			number = b.aim()
		} else {
			number, _ = strconv.Atoi(c.Words[0])
		}
	}
	switch c.Verb {
	case "speed":
		b.send("CP_SPEED", schema.Values{"speed": number})
	case "course":
		b.send("CP_DIRECTION", schema.Values{"dir": number})
	case "torp", "phaser", "plasma":
		b.send("CP_"+strings.ToUpper(c.Verb), schema.Values{"dir": number})
	case "shield", "cloak", "repair", "beam":
		b.send("CP_"+strings.ToUpper(c.Verb), schema.Values{"state": number})
	case "orbit", "bomb":
		b.send("CP_"+strings.ToUpper(c.Verb), schema.Values{"state": 1})
	case "det":
		b.send("CP_DET_TORPS", nil)
	case "mine":
		for i := range shotCount {
			b.send("CP_DET_MYTORP", schema.Values{"tnum": max(0, b.slot)*shotCount + i})
		}
	case "lock":
		n, _ := strconv.Atoi(c.Words[1])
		b.send(map[string]string{"planet": "CP_PLANLOCK", "player": "CP_PLAYLOCK"}[c.Words[0]], schema.Values{"pnum": n})
	case "tractor":
		b.send("CP_TRACTOR", schema.Values{"state": onOff(number >= 0), "pnum": max(0, number)})
	case "pressor":
		b.send("CP_REPRESS", schema.Values{"state": onOff(number >= 0), "pnum": max(0, number)})
	case "war":
		b.send("CP_WAR", schema.Values{"newmask": number & 0xff})
	case "refit":
		b.send("CP_REFIT", schema.Values{"ship": number})
	case "quit":
		b.send("CP_QUIT", nil)
	case "update":
		b.tell("CP_UDP_REQ", schema.Values{"request": requestFull, "connmode": 0, "port": 0})
	case "rate":
		d, _ := time.ParseDuration(c.Words[0])
		b.tell("CP_UPDATES", schema.Values{"usecs": int(d.Microseconds())})
	case "ping":
		b.tell("CP_PING_RESPONSE", schema.Values{"number": 0, "pingme": number, "cp_sent": 0, "cp_recv": 0})
	}
}

func onOff(on bool) int {
	if on {
		return 1
	}
	return 0
}

// aim returns the direction of the nearest enemy, 0 without one.
func (b *bot) aim() int {
	n := b.enemy()
	if n < 0 {
		return 0
	}
	me, s := &b.ships[b.slot], &b.ships[n]
	return int(bearing(me.x, me.y, s.x, s.y))
}

// outfit chooses a team and a ship, once that is allowed; until then it waits, and
// the command is done again.
func (b *bot) outfit(now time.Time, c Command) {
	if (b.status != outfit || !b.masked) && b.tries < 2 {
		b.tries++
		b.await(now, awaitOutfit)
		b.Script.Retry()
		return
	}
	b.tries = 0
	team, _ := script.Choice(teams, c.Words[0])
	ship, _ := script.Choice(ships, c.Words[1])
	if team == anyTeam {
		team = int(b.cfg.Seed % uint64(len(teamWords)))
	}
	b.tell("CP_OUTFIT", schema.Values{"team": team, "ship": ship})
	b.await(now, awaitShip)
}

func (b *bot) awaits(now time.Time, c Command) {
	n, _ := script.Choice(choices["await"], c.Words[0])
	w := waiting(n)
	if w == awaitDead && b.status != alive || w == awaitEnemy && b.enemy() >= 0 {
		return
	}
	b.await(now, w)
}

func (b *bot) askFeature(name string) {
	v := schema.Values{"feature_type": "S", "arg1": 0, "arg2": 0, "value": 1, "name": script.Clip(name, 79)}
	if name == "SP_GENERIC_32" {
		v["arg1"] = maxGeneric
	}
	b.tell("CP_FEATURE", v)
}

// ask is the talk about UDP.
func (b *bot) ask(now time.Time, c Command) {
	switch c.Verb {
	case "udp":
		b.udp = flow{asked: true}
		mode, _ := script.Choice(choices["udp"], c.Words[0])
		b.tell("CP_UDP_REQ", schema.Values{"request": requestUDP, "connmode": mode, "port": int(b.cfg.Local.Port())})
		b.await(now, awaitUDP)
	case "tcp":
		b.udp = flow{}
		b.tell("CP_UDP_REQ", schema.Values{"request": requestTCP, "connmode": 0, "port": 0})
	case "mode":
		mode, _ := script.Choice(choices["mode"], c.Words[0])
		b.tell("CP_UDP_REQ", schema.Values{"request": requestMode, "connmode": mode, "port": 0})
	}
}

func (b *bot) askShort(now time.Time, c Command) {
	version, _ := script.Choice(choices["short"], c.Words[0])
	b.wanted = version
	request := requestOn
	if version == 0 {
		request, version = requestOff, shortV2
	}
	b.tell("CP_S_REQ", schema.Values{"req": request, "version": version})
	b.await(now, awaitShort)
}

func (b *bot) say(group, to int, text string) {
	if b.short != 0 {
		text = script.Clip(text, shortMost)
		b.tell("CP_S_MESSAGE", schema.Values{"group": group, "indiv": to, "length": roundUp(4 + len([]rune(text)) + 1), "mesg": text})
		return
	}
	b.tell("CP_MESSAGE", schema.Values{"group": group, "indiv": to, "mesg": script.Clip(text, messageMost)})
}

// unhex reads bytes, at least one.
func unhex(text string) ([]byte, error) {
	data, err := hex.DecodeString(text)
	if err == nil && len(data) == 0 {
		err = errors.New("no bytes")
	}
	return data, err
}
