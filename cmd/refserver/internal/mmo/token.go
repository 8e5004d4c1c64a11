package mmo

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"opscope/cmd/refserver/internal/mmo/testserver"
)

// claims are what an enter token says. The HTTPS auth server, which is not part of
// the protocol, would hand it out; here bots make their own.
type claims struct {
	Issuer     string   `json:"iss"`
	Account    uint64   `json:"sub"`
	Name       string   `json:"name"`
	Characters []uint64 `json:"chars"`
	Issued     int64    `json:"iat"` // Unix time
	Expires    int64    `json:"exp"`
}

const tokenHeader = `{"alg":"HS256","typ":"JWT"}`

var tokenText = base64.RawURLEncoding

// enterToken returns a signed token for some claims, which last from now on.
func enterToken(s *testserver.Settings, now time.Time, c claims) string {
	c.Issuer, c.Issued, c.Expires = s.EnterToken.Issuer, now.Unix(), now.Add(s.EnterToken.Lifetime).Unix()
	body, _ := json.Marshal(c) // numbers and texts
	signed := tokenText.EncodeToString([]byte(tokenHeader)) + "." + tokenText.EncodeToString(body)
	return signed + "." + tokenText.EncodeToString(sign(s, signed))
}

func sign(s *testserver.Settings, text string) []byte {
	h := hmac.New(sha256.New, []byte(s.EnterToken.Key))
	h.Write([]byte(text))
	return h.Sum(nil)
}

var (
	errToken   = errors.New("the token is not ours")
	errExpired = errors.New("the token has expired")
)

// verifyToken returns what a token claims, if it is signed and not over.
func verifyToken(s *testserver.Settings, now time.Time, token string) (c claims, err error) {
	dot := strings.LastIndexByte(token, '.')
	if dot < 0 {
		return c, errToken
	}
	signature, err := tokenText.DecodeString(token[dot+1:])
	if err != nil || !hmac.Equal(signature, sign(s, token[:dot])) {
		return c, errToken
	}
	_, body, _ := strings.Cut(token[:dot], ".")
	text, err := tokenText.DecodeString(body)
	if err != nil || json.Unmarshal(text, &c) != nil || c.Issuer != s.EnterToken.Issuer {
		return c, errToken
	}
	if !now.Before(time.Unix(c.Expires, 0)) {
		return c, errExpired
	}
	return c, nil
}

// owns reports whether the claims name a character.
func (c *claims) owns(character uint64) bool { return slices.Contains(c.Characters, character) }

// udpToken returns a token that nobody else has, as far as random goes.
func udpToken(random *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return tokenText.EncodeToString(b)
}
