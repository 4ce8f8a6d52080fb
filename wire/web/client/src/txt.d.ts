// Files whose text is part of the program.
declare module "*.txt" {
  const text: string;
  export default text;
}
