package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeScenarios proves that the README lists the scenarios there are.
func TestReadmeScenarios(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	list, err := execute(t, "scenarios")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)<!-- refserver scenarios; [^>]*-->\n```text\n(.*?)```\n").FindSubmatch(readme)
	if m == nil || string(m[1]) != list {
		t.Errorf("it lists\n%s\nwant\n%s", m, list)
	}
}

// TestReadmeCommands proves that the README explains each command.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range newRoot(streams{}).Commands() {
		if name := c.Name(); name != "scenarios" && !strings.Contains(string(readme), "\n**"+name+"** ") {
			t.Errorf("it does not explain %s", name)
		}
	}
}
