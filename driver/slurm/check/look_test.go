package check

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers is a cluster that answers by the beginning of the command line.
type answers map[string]string

func (a answers) Run(_ context.Context, c command.Call) (command.Output, error) {
	line := c.String()
	for begin, text := range a {
		if strings.HasPrefix(line, begin) {
			if text == "denied" {
				return command.Output{}, &command.Failed{Call: c, Status: 1, Stderr: "Access denied", Cause: driver.ErrDenied}
			}
			return command.Output{Stdout: []byte(text)}, nil
		}
	}
	return command.Output{}, &command.Failed{Call: c, Status: 1, Stderr: "no answer to " + line, Cause: driver.ErrTransient}
}

func shippedFS() fstest.MapFS {
	return fstest.MapFS{
		"pitchpipe.lua": {Data: []byte("lua")}, "job_submit.lua": {Data: []byte("submit")}, "task_prolog": {Data: []byte("prolog")},
	}
}

// cluster is a configuration for a small cluster whose files are in a folder.
func cluster(t *testing.T, dir string) (Looker, answers) {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host = short(host)
	a := answers{
		"scontrol show config": "Configuration data as of " + time.Now().UTC().Format("2006-01-02T15:04:05") + "\nSLURM_VERSION = 22.05.8\nClusterName = c\n" +
			"SlurmctldHost[0] = " + host + "(127.0.0.1)\nSLURM_CONF = " + dir + "/slurm.conf\nTaskProlog = " + dir + "/task_prolog\n" +
			"AccountingStorageType = accounting_storage/slurmdbd\nJobSubmitPlugins = lua\n",
		"sinfo":                         "n1|idle*|" + host + ".example\nn1|idle*|" + host + ".example\n\nn2|idle|elsewhere\n",
		"scontrol -a -o show partition": "PartitionName=main QoS=N/A\nPartitionName=whole QoS=N/A Hidden=YES OverSubscribe=EXCLUSIVE\n",
		"squeue":                        "1\n2\n",
		"sacctmgr -nP show user":        "ctl|None\n",
		"sacctmgr -nP show assoc":       "physics|\nphysics|ctl\n",
	}
	return Looker{
		Facts:   Facts{Mode: Site, Caller: "root", Controller: "ctl", Broker: Broker{Socket: File{Path: filepath.Join(dir, "broker.sock")}}},
		Shipped: shippedFS(), Runner: a,
	}, a
}

func write(t *testing.T, dir, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestTheFactsOfACluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "job_submit.lua", `local pitchpipe_folder = "`+dir+`"`, 0o644)
	write(t, dir, "pitchpipe.lua", "lua", 0o644)
	write(t, dir, "task_prolog", "#!/bin/sh\nconf="+dir+"/conf\n", 0o755)
	write(t, dir, "conf", "site_dir="+dir+"\nsite_user=ctl\nlistener="+dir+"/absent\n", 0o644)
	cfg, a := cluster(t, dir)
	name, _ := os.Hostname()
	host := short(name)
	cfg.AsController = answers{"squeue": "1\n"}
	cfg.Exporter = func(_ context.Context, _ string, here bool) Exporter {
		if here {
			return Exporter{Address: "here"}
		}
		return Exporter{}
	}
	f, err := Cluster(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case !f.Here.Ctld || len(f.Here.Nodes) != 1 || f.Here.Nodes[0] != "n1":
		t.Errorf("this machine %+v", f.Here)
	case f.Skew == nil || *f.Skew > 2*time.Second:
		t.Errorf("skew %v", f.Skew)
	case len(f.Modules) != 1 || f.Modules[0].Text != "lua" || f.Modules[0].Seen != Present:
		t.Errorf("modules %+v", f.Modules)
	case f.Prolog.Seen != Present || f.Prolog.Mode.Perm() != 0o755 || f.PrologConf.Seen != Present:
		t.Errorf("prolog %+v, its configuration %+v", f.Prolog, f.PrologConf)
	case f.Settings.Path != dir || !f.Settings.Mode.IsDir() || f.Settings.FS == "":
		t.Errorf("folder %+v", f.Settings)
	case f.Listener.Seen != Absent || f.Broker.Socket.Seen != Absent:
		t.Errorf("listener %+v, broker %+v", f.Listener, f.Broker)
	case f.Jobs == nil || f.Jobs.Seen != 2 || !f.Jobs.ByController || f.Jobs.BySite != 1:
		t.Errorf("jobs %+v", f.Jobs)
	case len(f.Accounts.Levels) != 1 || len(f.Accounts.Assocs) != 2 || f.Accounts.Denied != "":
		t.Errorf("accounts %+v", f.Accounts)
	case !slices.Equal(f.Partitions, []parse.Partition{{Name: "main"}, {Name: "whole", Hidden: true, Exclusive: true}}):
		t.Errorf("partitions %+v", f.Partitions)
	case !slices.Equal(f.Nodes, []Node{
		{Name: "n1", State: "idle*", Host: host + ".example", Exporter: Exporter{Address: "here"}}, {Name: "n2", State: "idle", Host: "elsewhere"},
	}):
		t.Errorf("nodes %+v", f.Nodes)
	}
	a["sacctmgr -nP show user"] = "denied"
	if f, err = Cluster(t.Context(), cfg); err != nil || !strings.Contains(f.Accounts.Denied, "Access denied") {
		t.Errorf("denied accounts: %v, %+v", err, f.Accounts)
	}
	a["sacctmgr -nP show user"] = "garbage\n"
	if _, err = Cluster(t.Context(), cfg); !errors.Is(err, parse.ErrFormat) {
		t.Errorf("garbage: %v", err)
	}
}

func TestWithoutAClusterThereIsOneError(t *testing.T) {
	t.Parallel()
	cfg := Looker{Facts: Facts{Mode: Owner}, Shipped: shippedFS(), Runner: command.Exec{Bin: t.TempDir()}}
	if _, err := Cluster(t.Context(), cfg); !errors.Is(err, ErrNoSlurm) {
		t.Errorf("no commands: %v", err)
	}
	cfg.Runner = answers{}
	if _, err := Cluster(t.Context(), cfg); !errors.Is(err, ErrSilent) {
		t.Errorf("no answer: %v", err)
	}
	cfg.Runner = answers{"scontrol show config": "hello\n"}
	if _, err := Cluster(t.Context(), cfg); !errors.Is(err, parse.ErrFormat) {
		t.Errorf("no configuration: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cfg.Runner = answers{}
	if _, err := Cluster(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestAFileIsToldAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "f", "text", 0o600)
	if f := file(t.Context(), filepath.Join(dir, "f")); f.Text != "text" || f.Mode.Perm() != 0o600 || f.Owner == "" {
		t.Errorf("%+v", f)
	}
	if f := file(t.Context(), filepath.Join(dir, "g")); f.Seen != Absent {
		t.Errorf("absent: %+v", f)
	}
	if f := file(t.Context(), ""); f.Seen != NotLooked {
		t.Errorf("none: %+v", f)
	}
	if err := os.Mkdir(filepath.Join(dir, "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "closed/f", "", 0o644)
	if open(filepath.Join(dir, "closed", "f")) {
		t.Error("a folder with mode 0700 is open to all")
	}
	write(t, dir, "long", strings.Repeat("x", mostText+1), 0o644)
	if f := file(t.Context(), filepath.Join(dir, "long")); len(f.Text) != mostText {
		t.Errorf("%d bytes were read", len(f.Text))
	}
	if os.Geteuid() != 0 {
		if f := file(t.Context(), "/root/f"); f.Seen != Closed {
			t.Errorf("closed: %+v", f)
		}
	}
}

func FuzzRows(f *testing.F) {
	f.Add("ada|None\n", 2)
	f.Add("n1|idle*|head\n\n", 3)
	f.Fuzz(func(t *testing.T, output string, fields int) {
		got, err := rows(t.Context(), answers{"sinfo": output}, fields, "sinfo")
		if err != nil && output != "denied" && !errors.Is(err, parse.ErrFormat) {
			t.Error(err)
		}
		for _, row := range got {
			if len(row) != fields || len(got) > strings.Count(output, "\n")+1 {
				t.Errorf("%q gives %q", output, got)
			}
		}
	})
}
