import{a as o,b as r}from"./chunk-LMYUC554.js";import"./chunk-ILMMF2XO.js";export{r as ColourCard,o as ColourChoice};
