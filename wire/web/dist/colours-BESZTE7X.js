import{a as o,b as r}from"./chunk-YMZIGJXU.js";import"./chunk-RHDRITT2.js";export{r as ColourCard,o as ColourChoice};
