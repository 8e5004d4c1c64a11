//go:build !linux && !libpcap

package capture

import (
	"fmt"
	"runtime"
)

// openDevice is not possible here.
func openDevice(string, *LiveOptions) (device, string, error) { return nil, "", errNoLive }

// errNoLive is the error of systems without live capture.
var errNoLive = fmt.Errorf("this build cannot capture on %s\ntry: a build with libpcap (go build -tags libpcap), or tcpdump -w - | opscope decode -", runtime.GOOS)
