// The entry point. It only calls run, so that parts that are loaded later can import start.tsx without starting twice.
import { run } from "./start.tsx";

run();
