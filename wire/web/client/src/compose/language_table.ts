// The server's table of languages. It is loaded when a user first begins a block of code.
import table from "../../../../markdown/languages.txt";

export { table };
