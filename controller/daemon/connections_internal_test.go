package daemon

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/config"
	"pitchpipe/driver"
	"pitchpipe/exporter/api/peercred"
)

func TestNoUserKeepsTheOthersOut(t *testing.T) {
	t.Parallel()
	d := &Daemon{services: &services{log: slog.New(slog.DiscardHandler)}}
	for name, l := range map[string]*peercred.Listener{"the socket": d.limitSocket(nil), "metrics": d.limitMetrics(nil)} {
		if l.Each >= l.Strangers || l.Strangers >= l.All || l.Each < 1 {
			t.Fatalf("%s: room %+v: want more for all users than for one, and for the operator always some", name, l.Room)
		}
		for uid, known := range map[uint32]bool{0: true, uint32(os.Geteuid()): true, 12345: false} {
			if l.Known(uid) != known {
				t.Errorf("%s: uid %d is known: %v, want %v", name, uid, l.Known(uid), known)
			}
		}
		l.Full(peercred.Caller{UID: 12345}) // which is worth a line at most
	}
}

func TestTheOwnersOfJobsAreKnownByTheirUsers(t *testing.T) {
	t.Parallel()
	story := map[driver.JobID]digest{
		"1": {owner: "root"}, "2": {owner: "64001"}, "3": {owner: "64001"}, "4": {owner: "64002", over: time.Unix(1, 0)},
		"5": {owner: "in no directory"}, "6": {}, "7": {owner: "team"},
	}
	for _, tc := range []struct {
		driver string
		want   map[uint32]bool
	}{
		{"slurm", map[uint32]bool{0: true, 64001: true}},
		{"nomad", map[uint32]bool{0: true, 64001: true, 64003: true}},
	} {
		t.Run(tc.driver, func(t *testing.T) {
			t.Parallel()
			d := &Daemon{records: &records{digests: maps.Clone(story)}}
			d.cfg.Driver = tc.driver
			d.cfg.Nomad.People = []config.Person{{Namespace: "team", Name: "64003"}, {Namespace: "team", Name: "*"}, {Namespace: "other", Name: "64004"}}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := d.owners.follow(ctx, d.ownersNow); err != nil {
				t.Fatal(err)
			}
			for uid := range uint32(5) {
				uid += 64000
				if got := d.owners.has(uid); got != tc.want[uid] {
					t.Errorf("%d owns a job: %v, want %v", uid, got, tc.want[uid])
				}
			}
			if !d.owners.has(0) {
				t.Error("root owns none")
			}
		})
	}
}

func TestAnOwnerIsKnownWhileAnotherIsLookedUp(t *testing.T) {
	dir := t.TempDir()
	const program = "#!/bin/sh\n: >\"$0.asked\"\nexec /bin/sleep 60\n"
	if err := os.WriteFile(filepath.Join(dir, "id"), []byte(program), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	asked := filepath.Join(dir, "id.asked")
	t.Setenv("PATH", dir)
	var o owners
	o.add(64002) // of the round before
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.follow(ctx, func() []string { return []string{"64001", "of a slow directory"} }) }()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(asked); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the directory was not asked")
		}
	}
	if !o.has(64001) || !o.has(64002) {
		t.Errorf("known: %v and %v, want both", o.has(64001), o.has(64002))
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if o.has(64002) {
		t.Error("one who owns no job any more is an owner after the round")
	}
}

func TestASecondControllerFindsAPortForItsMetrics(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for _, tt := range []struct {
		name string
		cfg  config.Config
		ok   bool
	}{
		{"a user's own, by default", config.Config{Driver: "slurm", Slurm: config.Slurm{Mode: "owner"}}, true},
		{"a job of Nomad, by default", config.Config{Driver: "nomad"}, true},
		{"at an address that was set", config.Config{Driver: "local", Given: map[string]string{"listen": "--listen"}}, false},
		{"that of a Slurm site", config.Config{Driver: "slurm", Slurm: config.Slurm{Mode: "site"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.cfg.Listen = taken.Addr().String()
			l, err := (&Daemon{cfg: tt.cfg, services: &services{log: slog.New(slog.DiscardHandler)}}).listenMetrics(t.Context())
			if err == nil {
				err = l.Close()
			}
			if tt.ok != (err == nil) || err != nil && (!errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "--listen 127.0.0.1:PORT")) {
				t.Errorf("%v, want it to start: %v", err, tt.ok)
			}
		})
	}
}
