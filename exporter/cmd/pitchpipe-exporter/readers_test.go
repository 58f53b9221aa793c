package main

import (
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred/peercredtest"
)

func TestReadersAreNamesOrNumbers(t *testing.T) {
	t.Parallel()
	self, err := user.Current()
	if err != nil {
		t.Skipf("who runs this test is not known: %v", err)
	}
	uid, err := strconv.ParseUint(self.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseReaders([]string{self.Username, "61001"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint32{uint32(uid), 61001}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, account := range []string{"", "no such user", "-1", "4294967296"} {
		if got, err := parseReaders([]string{account}); err == nil || !strings.Contains(err.Error(), strconv.Quote(account)) {
			t.Errorf("%q: got %v, %v; want an error that names it", account, got, err)
		}
	}
}

func TestTheAccountOfASitesControllerSeesEverybodysJobs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("to be another user needs root")
	}
	const reader, stranger = 61001, 61002
	dir := peercredtest.Dir(t)
	socket := filepath.Join(dir, "s")
	client := exporterOn(t, socket, "--api.readers", strconv.Itoa(reader))
	id := "readers-" + strconv.Itoa(os.Getpid())
	_, wait := start(t, socket, "PITCHPIPE_JOB_ID="+id)
	defer func() {
		if err := wait(); err != nil {
			t.Error(err)
		}
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := client.Window(t.Context(), id, 0, 0); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	for uid, want := range map[uint32]bool{reader: true, stranger: false} {
		var jobs string
		peercredtest.As(t, uid, func() {
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // the next sample counts it
				_, node, err := peercredtest.Ask("unix", socket, http.MethodGet, api.PathNode, "", time.Minute)
				if err == nil && strings.Contains(node, `"jobs_running":`) {
					break
				} else if err != nil || time.Now().After(deadline) {
					t.Errorf("user %d does not hear how many jobs run: %v", uid, err)
					break
				}
			}
		})
		peercredtest.As(t, uid, func() {
			var err error
			if _, jobs, err = peercredtest.Ask("unix", socket, http.MethodGet, api.PathJobs, "", time.Minute); err != nil {
				t.Error(err)
			}
		})
		if got := strings.Contains(jobs, `"`+id+`"`); got != want {
			t.Errorf("user %d saw the job of root: %v, want %v:\n%s", uid, got, want, jobs)
		}
	}
}
