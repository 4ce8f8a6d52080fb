import{a as o}from"./chunk-FMSYOD6P.js";import"./chunk-HELCWPBU.js";import"./chunk-7V77K67M.js";import"./chunk-KYEDPC4O.js";export{o as Privacy};
