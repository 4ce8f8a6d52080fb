import{a as o,b as r}from"./chunk-6DA5NSH7.js";import"./chunk-SLJYOF4I.js";export{r as ColourCard,o as ColourChoice};
