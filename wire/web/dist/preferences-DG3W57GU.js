import{a as o}from"./chunk-JOEZBSXE.js";import"./chunk-HELCWPBU.js";import"./chunk-7V77K67M.js";import"./chunk-KYEDPC4O.js";export{o as Preferences};
