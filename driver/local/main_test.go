package local_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"pitchpipe/driver/local/supervise"
)

// TestMain is also the supervisor, the hungry process and the driver that is
// killed: the tests execute their own binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			os.Exit(supervise.Main(context.Background(), os.Args[2:]))
		case "hog":
			os.Exit(hog(os.Args[2], os.Args[3]))
		case "listen":
			os.Exit(fakeListener(os.Args[2:]))
		case "crash":
			os.Exit(crashDriver(os.Args[2:]))
		}
	}
	// These tests wait for processes that sleep, and hardly use a CPU.
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(max(8, runtime.GOMAXPROCS(0)))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	goleak.VerifyTestMain(m)
}

// hog holds memory until it is killed, and makes a file when it has it.
func hog(size, ready string) int {
	n, err := strconv.Atoi(size)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	// Populated by the kernel: the race detector would hold several times more.
	if _, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	time.Sleep(time.Hour)
	return 0
}
