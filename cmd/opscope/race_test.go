//go:build race

package main

// raceDetector says that tests run many times slower, and may do with fewer cases.
const raceDetector = true
