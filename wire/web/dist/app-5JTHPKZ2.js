import{Va as r}from"./chunk-HPKC5SJS.js";r();
