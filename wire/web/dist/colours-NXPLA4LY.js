import{a as o,b as r}from"./chunk-QHZU6ARU.js";import"./chunk-KC2XWJ3Z.js";export{r as ColourCard,o as ColourChoice};
