import{a as o,b as r}from"./chunk-PJLNZ6H6.js";import"./chunk-7LCL5MDI.js";export{r as ColourCard,o as ColourChoice};
