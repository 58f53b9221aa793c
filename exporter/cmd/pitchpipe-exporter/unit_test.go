package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const packaging = "../../../scripts/package"

// settings are the lines of a unit that set something, by their keys.
func settings(t *testing.T, name string) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(packaging, name))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			out[key] = append(out[key], value)
		}
	}
	return out
}

func TestThePackagedServiceKeepsItsState(t *testing.T) {
	t.Parallel()
	unit := settings(t, "pitchpipe-exporter.service")
	if start := unit["ExecStart"]; len(start) != 1 || !strings.Contains(start[0], "--state.file=/var/lib/pitchpipe-exporter/") {
		t.Errorf("ExecStart is %q", start)
	}
	if !slices.Equal(unit["StateDirectory"], []string{"pitchpipe-exporter"}) {
		t.Errorf("StateDirectory is %q", unit["StateDirectory"])
	}
}

// What implies DeviceAllow= closes /dev/nvidia* to the helper: each of these does in some
// systemd of the last years (ProtectClock= from 245 to 251).
func TestThePackagedServiceMayOpenDevices(t *testing.T) {
	t.Parallel()
	unit := settings(t, "pitchpipe-exporter.service")
	for _, key := range []string{"ProtectClock", "PrivateDevices", "DevicePolicy", "DeviceAllow", "RootImage", "MountImages", "ExtensionImages"} {
		if value, ok := unit[key]; ok {
			t.Errorf("%s=%s closes devices", key, value)
		}
	}
}

func TestThePackagedServiceHasDescriptorsForManyEvents(t *testing.T) {
	t.Parallel()
	limit := settings(t, "pitchpipe-exporter.service")["LimitNOFILE"]
	if len(limit) != 1 {
		t.Fatalf("LimitNOFILE is %q", limit)
	}
	// 256 CPUs, 64 jobs, 11 software and basic events.
	if n, err := strconv.Atoi(limit[0]); err != nil || n < 256*64*11 {
		t.Errorf("LimitNOFILE is %q", limit)
	}
}

// The doctor names files by the paths at which the package puts them.
func TestThePackageHasTheFilesThatTheDoctorNames(t *testing.T) {
	t.Parallel()
	said, err := os.ReadFile("../../doctor/doctor.go")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(packaging, "pitchpipe-exporter.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`/usr/share/pitchpipe-exporter/([A-Za-z0-9.-]+)`).FindAllStringSubmatch(string(said), -1)
	if len(named) < 2 {
		t.Errorf("the doctor names %v", named)
	}
	for _, m := range named {
		if !strings.Contains(string(list), "src: scripts/package/"+m[1]+"\n    dst: "+m[0]+"\n") {
			t.Errorf("%s is not in the package", m[0])
		}
		if _, err := os.Stat(filepath.Join(packaging, m[1])); err != nil {
			t.Error(err)
		}
	}
}
